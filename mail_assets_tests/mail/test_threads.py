"""Parents of messages, shapes of threads, aliases, and properties of random corpora."""

import random
from collections.abc import Mapping, Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.subjects import find_topic, is_answer
from mail_assets.mail.threads import (
    Alias,
    ThreadMessage,
    ThreadNode,
    build_trees,
    choose_copies,
    find_aliases,
    named_ancestors,
)
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.corpora import CORPORA


def mail(
    id: str, references: str = "", in_reply_to: str = "", sent_at: float = 0.0
) -> ThreadMessage:
    return ThreadMessage(id, tuple(references.split()), tuple(in_reply_to.split()), sent_at)


def outline(messages: Sequence[ThreadMessage]) -> list[str]:
    """Return a line for each node: thread, indent by depth, "?" after a ghost."""
    nodes = build_trees(messages)
    return [
        f"{node.thread_id}: {'  ' * node.depth}{node.message_id}{'?' * node.is_ghost}"
        for node in nodes
    ]


#: Domain of the ids that stand for forgotten messages.
FORGOTTEN = "@forgotten.invalid"


@cases(
    "messages, expected",
    {
        "nothing": ([], []),
        "parent dated and loaded after its child": (
            [mail("b", "a", "a", 1), mail("a", sent_at=2)],
            ["a: a", "a:   b"],
        ),
        "parent in an earlier month": (
            [mail("a", sent_at=0.0), mail("b", "a", "a", 40 * 86400.0)],
            ["a: a", "a:   b"],
        ),
        "a mail that names two roots is below the last, and ties nothing": (
            [mail("b", sent_at=1), mail("c", sent_at=2), mail("x", "b c", "", 3)],
            ["b: b", "c: c", "c:   x"],
        ),
        "cycle": ([mail("a", "b", "b", 1), mail("b", "a", "a", 2)], ["a: b", "a:   a"]),
        "self-reference": ([mail("s", "s", "s", 1)], ["s: s"]),
        "ghost root with two children": (
            [mail("x", "g", "g", 1), mail("y", "g", "g", 2)],
            ["g: g?", "g: x", "g: y"],
        ),
        "ghost between two messages": (
            [mail("a", sent_at=1), mail("c", "a b", "b", 3)],
            ["a: a", "a:   b?", "a:   c"],
        ),
        "successive ghosts are one": ([mail("a", "g1 g2", "z", 1)], ["a: z?", "a: a"]),
        "a thousand forged ids are one ghost": (
            [mail("a"), mail("b", " ".join(["a", *(f"g{n}" for n in range(999))]), "", 1)],
            ["a: a", "a:   g998?", "a:   b"],
        ),
        "a ghost with two children stays": (
            [mail("a", "g1 g2", "", 1), mail("b", "g0 g1", "", 2)],
            ["a: g1?", "a: g2?", "a: a", "a: b"],
        ),
        "forgotten messages stay": (
            [mail("a", f"g1 1{FORGOTTEN} 2{FORGOTTEN} g2", "", 1)],
            [
                f"1{FORGOTTEN}: 1{FORGOTTEN}?",
                f"1{FORGOTTEN}: 2{FORGOTTEN}?",
                f"1{FORGOTTEN}: g2?",
                f"1{FORGOTTEN}: a",
            ],
        ),
        "a hijacked thread stays one, whatever its subjects": (
            [mail("a", sent_at=1), mail("b", "a", "a", 2)],
            ["a: a", "a:   b"],
        ),
        "a reply without references is a thread of its own": (
            [mail("a", sent_at=1), mail("b", sent_at=2)],
            ["a: a", "b: b"],
        ),
        "cross-posted: copies of one message are one node": (
            [mail("a", sent_at=1), mail("a", sent_at=1), mail("b", "a", "", 2)],
            ["a: a", "a:   b"],
        ),
        "one In-Reply-To wins over the last reference": (
            [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "a", "b", 3)],
            ["a: a", "b: b", "b:   c"],
        ),
        "several In-Reply-To beside references neither win nor unite": (
            [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "a", "b x", 3)],
            ["a: a", "a:   c", "b: b"],
        ),
        "the first of several In-Reply-To where there are no references": (
            [mail("a", sent_at=1), mail("c", "", "a b", 3)],
            ["a: a", "a:   c"],
        ),
        "the other In-Reply-To are not united": (
            [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "", "a b", 3)],
            ["a: a", "a:   c", "b: b"],
        ),
        "siblings by date, then id": (
            [mail("a", "", "", 1), mail("c", "", "a", 3), mail("b", "", "a", 3)],
            ["a: a", "a:   b", "a:   c"],
        ),
    },
)
def test_threads_have_this_shape(messages: list[ThreadMessage], expected: list[str]) -> None:
    assert outline(messages) == expected


def test_earliest_copy_counts_then_most_references() -> None:
    copies = [
        mail("m", "", "", 2),
        mail("m", "", "", 1),
        mail("m", "a", "", 1),
        mail("a", sent_at=0),
    ]
    for seed in range(10):
        random.Random(seed).shuffle(copies)
        assert outline(copies) == ["a: a", "a:   m"]


@pytest.mark.parametrize("newest_first", [False, True])
def test_chain_of_20_000_messages_takes_linear_time(newest_first: bool) -> None:
    size = 20_000
    chain = [
        mail(f"m{i:06}", f"m{i - 1:06}" if i else "", "", float(-i if newest_first else i))
        for i in range(size)
    ]
    # every message is named by another one: the slow case for a search for cycles
    chain += [mail(f"x{i:06}", f"m{i:06}", "", -1e9) for i in range(size)]
    assert max(node.depth for node in build_trees(chain)) == size


corpora = st.lists(
    st.builds(
        ThreadMessage,
        id=st.integers(0, 11).map(lambda i: f"i{i:02}"),
        references=st.lists(st.integers(0, 19).map(lambda i: f"i{i:02}"), max_size=4).map(tuple),
        in_reply_to=st.lists(st.integers(0, 19).map(lambda i: f"i{i:02}"), max_size=2).map(tuple),
        sent_at=st.integers(0, 4).map(float),
        arrived_at=st.integers(0, 4).map(float),
        tie=st.sampled_from(["", "a"]),
        lists=st.sampled_from([("dev",), ("users",), ("dev", "users")]),
        topic=st.sampled_from(["", "lease", "vacuum"]),
        is_answer=st.booleans(),
        known_at=st.one_of(st.none(), st.integers(0, 4).map(float)),
    ),
    max_size=14,
)


@given(corpora, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_order_of_the_load_does_not_matter(corpus: list[ThreadMessage], rng: random.Random) -> None:
    expected = build_trees(corpus)
    again = corpus + rng.sample(corpus, min(3, len(corpus)))  # a partition loaded twice
    rng.shuffle(again)
    assert build_trees(again) == expected
    cut = rng.randrange(len(again) + 1)
    assert build_trees(m for part in (again[cut:], again[:cut]) for m in part) == expected


@given(corpora)
@settings(max_examples=200)
def test_nodes_agree_with_each_other(corpus: list[ThreadMessage]) -> None:
    nodes = build_trees(corpus)
    by_id = {node.message_id: node for node in nodes}
    assert len(by_id) == len(nodes)
    assert {node.message_id for node in nodes if not node.is_ghost} == {m.id for m in corpus}
    threads: dict[str, list[ThreadNode]] = {}
    for node in nodes:
        threads.setdefault(node.thread_id, []).append(node)
    assert [node for thread in threads.values() for node in thread] == nodes
    for thread in threads.values():
        assert [node.position for node in thread] == list(range(len(thread)))
        assert {node.thread_id for node in thread} == {min(node.message_id for node in thread)}
        assert len({node.root_id for node in thread}) == 1
    for node in nodes:
        ancestor = node.parent_message_id
        assert (node.root_id == node.message_id) == (ancestor is None)
        while ancestor is not None and by_id[ancestor].is_ghost:
            assert by_id[ancestor].position < node.position
            ancestor = by_id[ancestor].parent_message_id
        assert node.parent_id == ancestor
        assert node.depth == (by_id[ancestor].depth + 1 if ancestor else 0)
        if node.is_ghost:
            assert any(child.parent_message_id == node.message_id for child in nodes)


DAY = 86_400.0


def answers(root: str, *names: str, at: float = 0.0) -> list[ThreadMessage]:
    """Return answers to one message, archived or not, at intervals of a second."""
    return [mail(name, root, root, at + n) for n, name in enumerate(names, 1)]


@cases(
    "messages, expected",
    {
        "a mail does not place the missing root of others": (
            [*answers("g", "m", "n"), mail("a"), mail("b", "a", "a", 1), mail("x", "a g", "", 9)],
            ["a: a", "a:   b", "g: g?", "g: m", "g: n", "g: x"],
        ),
        "an older date does not help it": (
            [mail("x", "a g", "", -9), *answers("g", "m", "n"), mail("a")],
            ["g: g?", "g: x", "g: m", "g: n", "a: a"],
        ),
        "two mails do not either": (
            [*answers("g", "m", "n"), mail("a"), mail("x", "a g", "", 8), mail("y", "a g", "", 9)],
            ["a: a", "g: g?", "g: m", "g: n", "g: x", "g: y"],
        ),
        "more mails than messages that they move place it": (
            [mail("a"), *[mail(x, "a g", "", n) for n, x in enumerate("lmn", 1)], mail("o", "g")],
            ["a: a", "a: g?", "a:   o", "a:   l", "a:   m", "a:   n"],
        ),
        "answers of others count, not only their first": (
            [*answers("g", "m"), mail("n", "m", "m", 3), mail("a"), mail("x", "a g", "", 9)],
            ["a: a", "g: g?", "g: m", "g:   n", "g: x"],
        ),
        "a claim moves its own answers, and one message more": (
            [mail("a"), mail("x", "a g", "", 1), *answers("x", "y", "z", at=1), mail("m", "g")],
            ["a: a", "a: g?", "a:   m", "a:   x", "a:     y", "a:     z"],
        ),
        "one mail moves one message of others": (
            [
                *[mail("m", "g1", "", 1), mail("n", "g2", "", 2), mail("o", "g3", "", 3)],
                mail("x", "g1 g2 g3", "", 9),
            ],
            ["g1: g1?", "g1: m", "g2: g2?", "g2: n", "g2: g3?", "g2: o", "g2: x"],
        ),
        "answers that name one missing ancestor are one thread": (
            [mail("m", "p g", "", 1), mail("n", "p h", "", 2)],
            ["g: p?", "g: g?", "g: m", "g: h?", "g: n"],
        ),
        "references beside an archived parent tie nothing": (
            [mail("a"), mail("b", "", "", 1), mail("c", "b", "b", 2), mail("x", "b g", "a", 3)],
            ["a: a", "a:   x", "b: b", "b:   c"],
        ),
        "what is named after the parent is no ancestor": (
            [mail("a"), mail("b", "", "", 1), mail("c", "a b", "a", 2)],
            ["a: a", "a:   c", "b: b"],
        ),
        "references in the wrong order": (
            [mail("a"), mail("c", "b a", "", 2), mail("b", "a", "a", 1)],
            ["a: a", "a:   b", "a:   c"],
        ),
        "an id that a program adds after the parent": (
            [mail("a"), mail("b", "a zz", "a", 1), mail("c", "", "zz", 2)],
            ["a: a", "a:   b", "a:   zz?", "a:   c"],
        ),
        "it does not bring a thread of others along": (
            [mail("a"), mail("x", "a zz", "a", 9), *answers("zz", "c", "d")],
            ["a: a", "a:   x", "c: zz?", "c: c", "c: d"],
        ),
        "several In-Reply-To tie nothing": (
            [mail("a"), mail("b", "", "", 1), mail("c", "b", "b a", 2), mail("x", "", "a b", 3)],
            ["a: a", "a:   x", "b: b", "b:   c"],
        ),
        "missing parents below a message that is there": (
            [mail("a"), *[mail(f"m{n}", f"a g{n}", "", n) for n in range(1, 4)]],
            ["a: a", "a: g1?", "a:   m1", "a: g2?", "a:   m2", "a: g3?", "a:   m3"],
        ),
    },
)
def test_threads_by_reference(messages: list[ThreadMessage], expected: list[str]) -> None:
    found = [line.replace("  ", " ").split(":") for line in outline(messages)]
    wanted = [line.replace("  ", " ").split(":") for line in expected]
    assert [(x, y.strip()) for x, y in found] == [(x, y.strip()) for x, y in wanted]


def threads(messages: Sequence[ThreadMessage]) -> dict[str, str]:
    """Return the root of each message."""
    return {node.message_id: node.root_id for node in build_trees(messages) if not node.is_ghost}


@given(
    corpora,
    st.lists(
        st.lists(st.integers(0, 19).map(lambda i: f"i{i:02}"), max_size=8).map(tuple),
        min_size=1,
        max_size=2,
    ),
    st.lists(st.integers(0, 19).map(lambda i: (f"i{i:02}",)), min_size=2, max_size=2),
)
@settings(max_examples=200)
def test_two_mails_never_unite_threads_of_others(
    corpus: list[ThreadMessage], chains: list[tuple[str, ...]], parents: list[tuple[str]]
) -> None:
    hostile = [
        ThreadMessage(f"z{n}", chain, parent, 9.0, 9.0, topic="lease", lists=("dev",))
        for n, (chain, parent) in enumerate(zip(chains, parents, strict=False))
    ]
    corpus = [m._replace(topic="") for m in corpus]
    before, after = threads(corpus), threads([*corpus, *hostile])
    sizes = [*before.values()]
    large = {m: root for m, root in before.items() if sizes.count(root) > 1}
    pairs = {(root, after[m]) for m, root in large.items()}
    assert len({root for _, root in pairs}) == len(pairs)


def say(
    name: str, subject: str, day: float, references: str = "", lists: str = "dev", known: float = -1
) -> ThreadMessage:
    """Return a message sent on a day; it arrived on that day or on `known`."""
    fields = (find_topic(subject), is_answer(subject))
    known_at = day if known < 0 else known
    return ThreadMessage(
        name,
        tuple(references.split()),
        (),
        day * DAY,
        lists=tuple(lists.split()),
        topic=fields[0],
        is_answer=fields[1],
        known_at=known_at * DAY,
    )


def joined(messages: Sequence[ThreadMessage]) -> dict[str, str | None]:
    """Return the messages joined by subject, with their parents."""
    nodes = build_trees(messages)
    return {n.message_id: n.parent_id for n in nodes if n.by_subject and not n.is_ghost}


START = say("a", "[dev] Vacuum locks", 0)


@cases(
    "messages, expected",
    {
        "an answer": ([START, say("b", "Re: vacuum  locks", 1)], {"b": "a"}),
        "no answer": ([START, say("b", "vacuum locks", 1)], {}),
        "a forward": ([START, say("b", "Fwd: Re: vacuum locks", 1)], {}),
        "60 days": ([START, say("b", "AW: Re[2]: Vacuum locks", 60)], {"b": "a"}),
        "more than 60 days": ([START, say("b", "Re: Vacuum locks", 60.1)], {}),
        "days since the last of the topic, below the first": (
            [START, say("b", "Re: Vacuum locks", 50), say("c", "Re: Vacuum locks", 100)],
            {"b": "a", "c": "a"},
        ),
        "another subject in the thread": (
            [START, say("c", "x", 1, "a"), say("b", "Re: Vacuum locks", 2)],
            {"b": "a"},
        ),
        "a topic that began within a thread": (
            [
                say("o", "Other", 0),
                say("a", "Vacuum locks", 1, "o"),
                say("b", "Re: Vacuum locks", 2),
            ],
            {"b": "a"},
        ),
        "other list": ([START, say("b", "Re: Vacuum locks", 1, lists="users")], {}),
        "two lists": ([START, say("b", "Re: Vacuum locks", 1, lists="dev users")], {"b": "a"}),
        "with its answers, below a missing parent": (
            [START, say("b", "Re: Vacuum locks", 1, "gone"), say("c", "Re: Vacuum locks", 2, "b")],
            {"b": "a"},
        ),
        "all answers to one missing message": (
            [START, say("b", "Re: Vacuum locks", 1, "g"), say("c", "Re: Vacuum locks", 2, "g")],
            {"b": "a", "c": "a"},
        ),
        "its parent is there": (
            [START, say("g", "Re: Vacuum locks", 1, "a"), say("b", "Re: Vacuum locks", 2, "g")],
            {},
        ),
        "the first message is missing": (
            [say("b", "Re: Vacuum locks", 1), say("c", "Re: Vacuum locks", 2)],
            {"c": "b"},
        ),
        "a generic subject": ([say("a", "Your mail", 0), say("b", "Re: your mail", 1)], {}),
        "another version of a patch": (
            [say("a", "[PATCH v2] fix locks", 0), say("b", "Re: [PATCH v3] fix locks", 1)],
            {},
        ),
        "the newest of two threads": (
            [START, say("n", "Vacuum locks", 3), say("b", "Re: Vacuum locks", 4)],
            {"b": "n"},
        ),
        "a later thread does not count": (
            [START, say("n", "Vacuum locks", 3), say("b", "Re: Vacuum locks", 2)],
            {"b": "a"},
        ),
        "mail that came later with an older date becomes no root": (
            [say("n", "Re: Vacuum locks", 1, known=9), say("b", "Re: Vacuum locks", 2, "g")],
            {},
        ),
        "mail that came later does not bridge two threads": (
            [
                START,
                say("m", "Re: Vacuum locks", 50, known=150),
                say("b", "Re: Vacuum locks", 100, "g"),
                say("c", "Re: Vacuum locks", 101, "b"),
            ],
            {"m": "a"},
        ),
        "a thread that goes on later was silent then": (
            [START, say("m", "Re: Vacuum locks", 150, "a"), say("b", "Re: Vacuum locks", 100, "g")],
            {},
        ),
    },
)
def test_answer_without_a_parent_joins_by_subject(
    messages: list[ThreadMessage], expected: dict[str, str]
) -> None:
    assert joined(messages) == expected
    assert joined(messages[::-1]) == expected


@pytest.mark.parametrize(("name", "roots"), [
    ("R25-protonmail-internalid.mbox", {"a": 3}),
    ("R43-one-mail-ties-threads.2024-03.mbox", {f"g{n}": 4 for n in range(0, 36, 4)} | {"g36": 5}),
])  # fmt: skip
def test_reported_mail_is_in_its_threads(name: str, roots: dict[str, int]) -> None:
    path = CORPORA / "reported" / name
    if not path.exists():
        pytest.skip(f"the reported mail is not here: {path}")
    found: dict[str, int] = {}
    messages = []
    for raw in split_archive(path, "plain"):
        m = parse_message(raw, month="2024-03", dialect="plain")
        at = m.sent_at.timestamp()
        messages.append(ThreadMessage(m.message_id, m.references, m.in_reply_to, at))
    for root in threads(messages).values():
        found[root.partition("@")[0]] = found.get(root.partition("@")[0], 0) + 1
    assert found == roots


A, B, C = mail("a", sent_at=1), mail("b", sent_at=2), mail("c", sent_at=3)
REPLY = mail("r", "b", "", 5)
LATER, BRIDGE = mail("d", "1", "", 6), mail("1", "b", "", 4)

Led = Mapping[str, Alias]


def follow(*corpora: Sequence[ThreadMessage], start: Led | None = None) -> dict[str, Alias]:
    """Return the aliases after each corpus was replaced by the next one."""
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
    left_out = {x: node.thread_id for node in new for x in node.left_out}
    thread_of = {node.message_id: node.thread_id for node in new}
    for x in named.keys() - standing:
        among = [m for m in named[x] if left_out.get(x, thread_of[m]) == thread_of[m]]
        assert after[x] == Alias(min(among), True)


@given(corpora, st.integers(0, 14))
@settings(max_examples=150)
def test_aliases_ignore_history_while_mail_comes(corpus: list[ThreadMessage], cut: int) -> None:
    at_once = find_aliases(corpus, build_trees(corpus), (), {})
    assert all(alias.named for alias in at_once.values())
    copies = {m.id for m in corpus[:cut]} & {m.id for m in corpus[cut:]}
    distinct = [m for m in corpus if m.id not in copies]
    portions = follow([m for m in corpus[:cut] if m.id not in copies], distinct)
    assert portions == find_aliases(distinct, build_trees(distinct), (), {})
