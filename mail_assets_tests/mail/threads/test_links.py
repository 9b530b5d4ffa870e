"""Parents of messages: claims about missing parents, and joins by subject."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.subjects import find_topic, is_answer
from mail_assets.mail.threads import SPAN, ThreadMessage, build_trees
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.corpora import CORPORA
from mail_assets_tests.mail.threads.test_tree import mail, outline
from mail_assets_tests.mail.threads.test_tree import messages as corpora

DAY = 86_400.0


def answers(root: str, *names: str, at: float = 0.0) -> list[ThreadMessage]:
    """Return answers to one message, archived or not, sent one second after the other."""
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


def test_span_is_sixty_days() -> None:
    assert SPAN == 60 * DAY


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
