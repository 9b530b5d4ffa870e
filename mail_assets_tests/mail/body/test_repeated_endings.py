"""What repeats at the end of a list's messages is learnt, whatever their order."""

import random

from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.repeated_endings import NO_ENDINGS, RepeatedEndings, learn_endings
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
