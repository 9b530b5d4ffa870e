"""What repeats at the end of a list's messages is learnt, whatever their order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.footers import NO_ENDINGS, RepeatedEndings, hash_line, learn_endings
from mail_assets.mail.body.segments import ending_of, segment_body

FOOTER = (
    "\n\n*** Ask the harbour list ***\nLeave by writing to harbour-leave-jo=mail.example.org@list"
)
TEXTS = ("The crane is broken.", "Who has the key?", "It rained.", "Boats float.", "We are four.")
PEOPLE = ("ann@x.example", "bob@x.example", "cy@x.example", "dee@x.example", "eve@x.example")


def learn(messages: list[tuple[str, str, str]]) -> RepeatedEndings:
    """Learn from authors, subjects and bodies."""
    return learn_endings(
        (author, subject, ending_of(body, segment_body(body))) for author, subject, body in messages
    )


def kinds(body: str, author: str, endings: RepeatedEndings) -> list[tuple[str, str]]:
    """Return the kind of each segment and its text without blanks around."""
    return [
        (p.kind, body[p.start : p.end].strip()) for p in segment_body(body, "", author, endings)
    ]


def month_with_footer() -> list[tuple[str, str, str]]:
    """A message of each person in a thread of its own."""
    return [(who, f"subject {n}", f"Dear all,\n{TEXTS[n]}{FOOTER}") for n, who in enumerate(PEOPLE)]


def test_what_ends_messages_of_many_authors_is_footer() -> None:
    endings = learn(month_with_footer())
    body = f"Something new.\nAnd more.{FOOTER}\n"
    assert kinds(body, "new@x.example", endings) == [
        ("text", "Something new.\nAnd more."),
        ("footer", FOOTER.strip()),
    ]


def test_what_ends_several_messages_of_one_author_is_signature() -> None:
    signature = "Jo Roe\nHarbour office, room 5"
    bodies = [f"Hello,\n{text}\n\n{signature}\n" for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    assert kinds(bodies[0], "jo@x.example", endings)[-1] == ("signature", signature)
    assert kinds(bodies[0], "ann@x.example", endings)[-1][0] == "text"


def test_nothing_is_learnt_of_nothing() -> None:
    assert learn_endings([]) == NO_ENDINGS
    assert learn(month_with_footer()) != NO_ENDINGS


@given(st.randoms(use_true_random=False))
def test_the_order_of_messages_does_not_matter(chance: random.Random) -> None:
    messages = [*month_with_footer(), *month_with_footer()]
    first = learn(messages)
    chance.shuffle(messages)
    assert learn(messages) == first
    assert learn(messages).digest == first.digest


def test_copies_of_one_message_teach_nothing() -> None:
    body = f"Dear all,\n{TEXTS[0]}{FOOTER}\n\nJo Roe\nHarbour office, room 5\n"
    copies = [(who, f"subject {n}", body) for n, who in enumerate(PEOPLE)]
    resent = [("jo@x.example", f"again {n}", body) for n in range(9)]
    assert learn(copies) == learn(resent) == NO_ENDINGS


def test_templates_of_a_bot_keep_what_differs() -> None:
    bodies = [f"Build {text}\n\nAll pass on https://ci.example\nGood night." for text in TEXTS]
    month = [("ci@x.example", f"build {n}", body) for n, body in enumerate(bodies)]
    assert kinds(bodies[0], "ci@x.example", learn(month))[0][1].startswith("Build The crane")


def test_what_an_author_often_answers_stays_text() -> None:
    bodies = [f"> {text}\nSeen.\n{text}\n\nApplied, thanks." for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    assert {kind for kind, _ in kinds(bodies[0], "jo@x.example", endings)} == {"quote", "text"}


def test_a_closing_above_a_learnt_signature_stays_text() -> None:
    bodies = [f"Hello,\n{text}\n\nBest regards,\nJo Roe\nroom 5" for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    found = kinds(bodies[0], "jo@x.example", endings)
    assert found[0][1].endswith("Best regards,")
    assert found[1] == ("signature", "Jo Roe\nroom 5")


def test_what_many_people_ask_at_the_end_is_no_footer() -> None:
    month = [(who, f"s{n}", f"Hello,\n{TEXTS[n]}\n\nAny ideas?") for n, who in enumerate(PEOPLE)]
    endings = learn(month)
    assert {kind for kind, _ in kinds(month[0][2], PEOPLE[0], endings)} == {"text"}


def test_a_signature_above_a_quote_of_the_rest_is_learnt() -> None:
    attribution = "On Mon, 5 Jan 2026, Ann wrote:\n> The crane?\n> Why?"
    bodies = [f"Hello,\n{text}\n\nJo Roe\nHarbour office\n\n{attribution}" for text in TEXTS]
    endings = learn([("x@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    found = kinds(bodies[0], "x@x.example", endings)
    assert found[1] == ("signature", "Jo Roe\nHarbour office")


SAME_LINES = [
    ("Room 5, desk 12", "room 17,  desk 4"),
    ("write to ann@x.example", "write to bob.roe@mail.example"),
    ("<ann@x.example> and bob@x.example 3", "<cy@y.example> and dee@x.example 4"),
    (f"{'a' * 200}@x.example", f"{'a' * 120}{'b' * 80}@x.example"),
    ("https://x.example/0123456789abcdef", "https://x.example/fedcba9876543210"),
    ("https://x.example/?id=0a0a0a0a0a0a", "https://x.example/?id=abcdefabcdef"),
]
OTHER_LINES = [
    ("Room 5", "Rooms 5"),
    ("ann", "bob"),
    ("ann@x.example", "@x.example"),
    ("https://x.example/ann", "https://x.example/bob"),
    (f"{'a' * 100}@x.example", f"{'b' * 100}@x.example"),
]


@pytest.mark.parametrize(("one", "other"), SAME_LINES)
def test_lines_that_differ_in_what_varies_are_the_same(one: str, other: str) -> None:
    assert hash_line(one) == hash_line(other)


@pytest.mark.parametrize(("one", "other"), OTHER_LINES)
def test_lines_that_differ_in_words_are_others(one: str, other: str) -> None:
    assert hash_line(one) != hash_line(other)
