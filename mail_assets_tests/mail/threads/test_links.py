"""Parents of messages: claims about missing parents, and joins by subject."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.subjects import find_topic, is_answer
from mail_assets.mail.threads.links import SPAN
from mail_assets.mail.threads.message import ThreadMessage
from mail_assets.mail.threads.tree import build_trees
from mail_assets_tests.mail.corpora import CORPORA
from mail_assets_tests.mail.threads.test_tree import mail, outline
from mail_assets_tests.mail.threads.test_tree import messages as corpora

DAY = 86_400.0


def answers(root: str, *names: str, at: float = 0.0) -> list[ThreadMessage]:
    """Return answers to one message, archived or not, sent one second after the other."""
    return [mail(name, root, root, at + n) for n, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [*answers("g", "m", "n"), mail("a"), mail("b", "a", "a", 1), mail("x", "a g", "", 9)],
            ["a: a", "a:   b", "g: g?", "g: m", "g: n", "g: x"],
            id="a mail does not place the missing root of others",
        ),
        pytest.param(
            [mail("x", "a g", "", -9), *answers("g", "m", "n"), mail("a")],
            ["g: g?", "g: x", "g: m", "g: n", "a: a"],
            id="an older date does not help it",
        ),
        pytest.param(
            [
                *answers("g", "m", "n"),
                mail("a"),
                mail("x", "a g", "", 8),
                mail("y", "a g", "", 9),
            ],
            ["a: a", "g: g?", "g: m", "g: n", "g: x", "g: y"],
            id="two mails do not either",
        ),
        pytest.param(
            [mail("a"), *[mail(x, "a g", "", n) for n, x in enumerate("lmn", 1)], mail("o", "g")],
            ["a: a", "a: g?", "a:   o", "a:   l", "a:   m", "a:   n"],
            id="more mails than messages that they move place it",
        ),
        pytest.param(
            [*answers("g", "m"), mail("n", "m", "m", 3), mail("a"), mail("x", "a g", "", 9)],
            ["a: a", "g: g?", "g: m", "g:   n", "g: x"],
            id="answers of others count, not only their first",
        ),
        pytest.param(
            [mail("a"), mail("x", "a g", "", 1), *answers("x", "y", "z", at=1), mail("m", "g")],
            ["a: a", "a: g?", "a:   m", "a:   x", "a:     y", "a:     z"],
            id="a claim moves its own answers, and one message more",
        ),
        pytest.param(
            [
                *[mail("m", "g1", "", 1), mail("n", "g2", "", 2), mail("o", "g3", "", 3)],
                mail("x", "g1 g2 g3", "", 9),
            ],
            ["g1: g1?", "g1: m", "g2: g2?", "g2: n", "g2: g3?", "g2: o", "g2: x"],
            id="one mail moves one message of others",
        ),
        pytest.param(
            [mail("m", "p g", "", 1), mail("n", "p h", "", 2)],
            ["g: p?", "g: g?", "g: m", "g: h?", "g: n"],
            id="answers that name one missing ancestor are one thread",
        ),
        pytest.param(
            [mail("a"), mail("b", "", "", 1), mail("c", "b", "b", 2), mail("x", "b g", "a", 3)],
            ["a: a", "a:   x", "b: b", "b:   c"],
            id="references beside an archived parent tie nothing",
        ),
        pytest.param(
            [mail("a"), mail("b", "", "", 1), mail("c", "a b", "a", 2)],
            ["a: a", "a:   c", "b: b"],
            id="what is named after the parent is no ancestor",
        ),
        pytest.param(
            [mail("a"), mail("c", "b a", "", 2), mail("b", "a", "a", 1)],
            ["a: a", "a:   b", "a:   c"],
            id="references in the wrong order",
        ),
        pytest.param(
            [mail("a"), mail("b", "a zz", "a", 1), mail("c", "", "zz", 2)],
            ["a: a", "a:   b", "a:   zz?", "a:   c"],
            id="an id that a program adds after the parent",
        ),
        pytest.param(
            [mail("a"), mail("x", "a zz", "a", 9), *answers("zz", "c", "d")],
            ["a: a", "a:   x", "c: zz?", "c: c", "c: d"],
            id="it does not bring a thread of others along",
        ),
        pytest.param(
            [mail("a"), mail("b", "", "", 1), mail("c", "b", "b a", 2), mail("x", "", "a b", 3)],
            ["a: a", "a:   x", "b: b", "b:   c"],
            id="several In-Reply-To tie nothing",
        ),
        pytest.param(
            [mail("a"), *[mail(f"m{n}", f"a g{n}", "", n) for n in range(1, 4)]],
            ["a: a", "a: g1?", "a:   m1", "a: g2?", "a:   m2", "a: g3?", "a:   m3"],
            id="missing parents below a message that is there",
        ),
    ],
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
    """Return a message that was sent on a day; it arrived on the same, or on `known`."""
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
    """Return the messages that joined by subject, with their parents."""
    nodes = build_trees(messages)
    return {n.message_id: n.parent_id for n in nodes if n.by_subject and not n.is_ghost}


START = say("a", "[dev] Vacuum locks", 0)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([START, say("b", "Re: vacuum  locks", 1)], {"b": "a"}, id="an answer"),
        pytest.param([START, say("b", "vacuum locks", 1)], {}, id="no answer"),
        pytest.param([START, say("b", "Fwd: Re: vacuum locks", 1)], {}, id="a forward"),
        pytest.param([START, say("b", "AW: Re[2]: Vacuum locks", 60)], {"b": "a"}, id="60 days"),
        pytest.param([START, say("b", "Re: Vacuum locks", 60.1)], {}, id="more than 60 days"),
        pytest.param(
            [START, say("b", "Re: Vacuum locks", 50), say("c", "Re: Vacuum locks", 100)],
            {"b": "a", "c": "a"},
            id="days since the last of the topic, below the first",
        ),
        pytest.param(
            [START, say("c", "x", 1, "a"), say("b", "Re: Vacuum locks", 2)],
            {"b": "a"},
            id="another subject in the thread",
        ),
        pytest.param(
            [
                say("o", "Other", 0),
                say("a", "Vacuum locks", 1, "o"),
                say("b", "Re: Vacuum locks", 2),
            ],
            {"b": "a"},
            id="a topic that began within a thread",
        ),
        pytest.param([START, say("b", "Re: Vacuum locks", 1, lists="users")], {}, id="other list"),
        pytest.param(
            [START, say("b", "Re: Vacuum locks", 1, lists="dev users")], {"b": "a"}, id="two lists"
        ),
        pytest.param(
            [START, say("b", "Re: Vacuum locks", 1, "gone"), say("c", "Re: Vacuum locks", 2, "b")],
            {"b": "a"},
            id="with its answers, below a missing parent",
        ),
        pytest.param(
            [START, say("b", "Re: Vacuum locks", 1, "g"), say("c", "Re: Vacuum locks", 2, "g")],
            {"b": "a", "c": "a"},
            id="all answers to one missing message",
        ),
        pytest.param(
            [START, say("g", "Re: Vacuum locks", 1, "a"), say("b", "Re: Vacuum locks", 2, "g")],
            {},
            id="its parent is there",
        ),
        pytest.param(
            [say("b", "Re: Vacuum locks", 1), say("c", "Re: Vacuum locks", 2)],
            {"c": "b"},
            id="the first message is missing",
        ),
        pytest.param(
            [say("a", "Your mail", 0), say("b", "Re: your mail", 1)], {}, id="a generic subject"
        ),
        pytest.param(
            [say("a", "[PATCH v2] fix locks", 0), say("b", "Re: [PATCH v3] fix locks", 1)],
            {},
            id="another version of a patch",
        ),
        pytest.param(
            [START, say("n", "Vacuum locks", 3), say("b", "Re: Vacuum locks", 4)],
            {"b": "n"},
            id="the newest of two threads",
        ),
        pytest.param(
            [START, say("n", "Vacuum locks", 3), say("b", "Re: Vacuum locks", 2)],
            {"b": "a"},
            id="a later thread does not count",
        ),
        pytest.param(
            [say("n", "Re: Vacuum locks", 1, known=9), say("b", "Re: Vacuum locks", 2, "g")],
            {},
            id="mail that came later with an older date becomes no root",
        ),
        pytest.param(
            [
                START,
                say("m", "Re: Vacuum locks", 50, known=150),
                say("b", "Re: Vacuum locks", 100, "g"),
                say("c", "Re: Vacuum locks", 101, "b"),
            ],
            {"m": "a"},
            id="mail that came later does not bridge two threads",
        ),
        pytest.param(
            [
                START,
                say("m", "Re: Vacuum locks", 150, "a"),
                say("b", "Re: Vacuum locks", 100, "g"),
            ],
            {},
            id="a thread that goes on later was silent then",
        ),
    ],
)
def test_answer_without_a_parent_joins_by_subject(
    messages: list[ThreadMessage], expected: dict[str, str]
) -> None:
    assert joined(messages) == expected
    assert joined(messages[::-1]) == expected


def test_span_is_sixty_days() -> None:
    assert SPAN == 60 * DAY


@pytest.mark.parametrize(
    ("name", "roots"),
    [
        ("R25-protonmail-internalid.mbox", {"a": 3}),
        (
            "R43-one-mail-ties-threads.2024-03.mbox",
            {f"g{n}": 4 for n in range(0, 36, 4)} | {"g36": 5},
        ),
    ],
)
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
