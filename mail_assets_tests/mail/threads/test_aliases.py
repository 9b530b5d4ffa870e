"""Ids outside of threads: named ones follow the messages, vanished ones the history."""

from collections.abc import Mapping, Sequence
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.threads import (
    Alias,
    ThreadMessage,
    build_trees,
    choose_copies,
    find_aliases,
    named_ancestors,
)
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.threads.test_tree import mail
from mail_assets_tests.mail.threads.test_tree import messages as corpora

A, B, C = mail("a", sent_at=1), mail("b", sent_at=2), mail("c", sent_at=3)
REPLY = mail("r", "b", "", 5)
LATER, BRIDGE = mail("d", "1", "", 6), mail("1", "b", "", 4)

Led = Mapping[str, Alias]


def follow(*corpora: Sequence[ThreadMessage], start: Led | None = None) -> dict[str, Alias]:
    """Return the aliases after one corpus was replaced by the next, and so on."""
    found: dict[str, Alias] = dict(start or {})
    before: Sequence[ThreadMessage] = ()
    for corpus in corpora:
        found = find_aliases(corpus, build_trees(corpus), build_trees(before), found)
        before = corpus
    return found


@cases(
    "corpora, expected",
    {
        "what stands in a thread needs no alias": ([[A, B]], {}),
        "several In-Reply-To beside references are no ancestors and lead nowhere": (
            [[mail("m", "a", "x y", 1)]],
            {},
        ),
        "another named message needs no alias either": ([[B, C, mail("m", "b c", "", 4)]], {}),
        "what is named above a parent leads to the smallest id that names it": (
            [[A, mail("m", "x a", "", 4), mail("k", "x a", "", 5)]],
            {"x": Alias("k", True)},
        ),
        "what is named after the parent leads to the message that names it": (
            [[A, mail("m", "a y", "a", 4)]],
            {"y": Alias("m", True)},
        ),
        "a message that comes back leads itself": ([[B, REPLY], [B], [B, REPLY]], {}),
        "nothing is left of the part that it led to": ([[B, REPLY], [B], [C]], {}),
        "a bridge vanishes: it is a ghost of one part": ([[B, LATER, BRIDGE], [B, LATER]], {}),
        "a merge that is undone takes no id along": (
            [[B, REPLY], [B], [B, LATER, BRIDGE], [B, LATER]],
            {"r": Alias("b", False)},
        ),
        "a reply vanishes: the thread stays": ([[B, REPLY], [B]], {"r": Alias("b", False)}),
        "a root vanishes: it is a ghost": ([[B, REPLY], [REPLY]], {}),
        "a whole thread vanishes: nothing is left to lead to": ([[A, B], [A]], {}),
        "where it led to vanishes too: on to the next of the thread": (
            [[B, REPLY, mail("s", "b", "", 6)], [B, mail("s", "b", "", 6)], [mail("s", "", "", 6)]],
            {"b": Alias("s", False), "r": Alias("s", False)},
        ),
    },
)
def test_ids_lead_to_their_threads(
    corpora: list[list[ThreadMessage]], expected: dict[str, Alias]
) -> None:
    assert follow(*corpora) == expected


@given(corpora, corpora)
@settings(max_examples=150)
def test_id_leads_somewhere_while_its_thread_has_mail(
    first: list[ThreadMessage], second: list[ThreadMessage]
) -> None:
    old, new = build_trees(first), build_trees(second)
    before = find_aliases(first, old, (), {})
    after = find_aliases(second, new, old, before)
    archived = {node.message_id for node in new if not node.is_ghost}
    standing = {node.message_id for node in new}
    assert not after.keys() & standing
    assert {alias.message_id for alias in after.values()} <= archived
    for node in old:
        left = {n.message_id for n in old if n.thread_id == node.thread_id} & archived
        if left:
            assert node.message_id in standing | after.keys()
    named: dict[str, list[str]] = {}
    for m in choose_copies(second).values():
        for x in chain(*named_ancestors(m)):
            named.setdefault(x, []).append(m.id)
    for x in named.keys() - standing:
        assert after[x] == Alias(min(named[x]), True)


@given(corpora, st.integers(0, 14))
@settings(max_examples=150)
def test_aliases_ignore_history_while_mail_only_comes(
    corpus: list[ThreadMessage], cut: int
) -> None:
    at_once = find_aliases(corpus, build_trees(corpus), (), {})
    assert all(alias.named for alias in at_once.values())
    copies = {m.id for m in corpus[:cut]} & {m.id for m in corpus[cut:]}
    distinct = [m for m in corpus if m.id not in copies]
    portions = follow([m for m in corpus[:cut] if m.id not in copies], distinct)
    assert portions == find_aliases(distinct, build_trees(distinct), (), {})
