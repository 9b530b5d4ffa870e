"""Footers and signatures learnt from a month, and attacks on the words of others."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.endings import EndedMail, RepeatedEndings, hash_line, learn_endings
from mail_assets.mail.body.segments import (
    ending_of,
    mark_ending,
    readable_text,
    segment_body,
    segment_with_ending,
)
from mail_assets.mail.body.signatures import name_words
from mail_assets_tests.cases import cases

FOOTER = (
    "\n\n*** Ask the harbour list ***\nLeave by writing to harbour-leave-jo=mail.example.org@list"
)
TEXTS = ("The crane is broken.", "Who has the key?", "It rained.", "Boats float.", "We are four.")
PEOPLE = ("ann@x.example", "bob@x.example", "cy@x.example", "dee@x.example", "eve@x.example")


def learn(messages: list[tuple[str, str, str]]) -> RepeatedEndings:
    """Learn from authors, subjects and bodies, one for each day."""
    return learn_endings(
        EndedMail(author, subject, ending_of(body, segment_body(body)), len(body))
        for author, subject, body in messages
    )


@pytest.mark.parametrize("body", [
    "",
    "\n",
    FOOTER,
    f"It rained.\n\nJo{FOOTER}\n",
    f"It rained.\r\n\r\n-- \r\nJo{FOOTER}\r\n \r\n",
    f"Yes.\n\nOn Mon, 5 Jan 2004, Ann wrote:\n> It rained.\n\nJo{FOOTER}",
    "It rained.\n" * 60_000 + FOOTER,
])  # fmt: skip
def test_ending_is_that_of_the_segments(body: str) -> None:
    parts = segment_body(body, "Jo Roe", "jo@x.example")
    expected = parts, ending_of(body, parts)
    assert segment_with_ending(body, "Jo Roe", "jo@x.example", answers=True) == expected


def kinds(body: str, author: str, endings: RepeatedEndings) -> list[tuple[str, str]]:
    parts = segment_body(body, "", author)
    match = endings.match(author, ending_of(body, parts))
    marked = mark_ending(body, parts, match, name_words("", author))
    return [(p.kind, body[p.start : p.end].strip()) for p in marked]


def month_with_footer() -> list[tuple[str, str, str]]:
    """A message of each person, in separate threads."""
    return [(who, f"subject {n}", f"Dear all,\n{TEXTS[n]}{FOOTER}") for n, who in enumerate(PEOPLE)]


def test_block_that_ends_mail_of_many_authors_is_footer() -> None:
    endings = learn(month_with_footer())
    body = f"Something new.\nAnd more.{FOOTER}\n"
    assert kinds(body, "new@x.example", endings) == [
        ("text", "Something new.\nAnd more."),
        ("footer", FOOTER.strip()),
    ]


def test_block_that_ends_mail_of_one_author_is_signature() -> None:
    signature = "Jo Roe\nHarbour office, room 5"
    bodies = [f"Hello,\n{text}\n\n{signature}\n" for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    assert kinds(bodies[0], "jo@x.example", endings)[-1] == ("signature", signature)
    assert kinds(bodies[0], "ann@x.example", endings)[-1][0] == "text"


def test_motto_below_a_rule_and_the_name_is_signature() -> None:
    rule, motto = (
        "----:----:----:----",
        "Borders are just bumps on the way of those who lift cranes.",
    )
    rule *= 2
    for frame, kind in ((f"{rule}\nJo Roe", "signature"), (rule, "text"), ("Jo Roe", "text")):
        bodies = [f"Hello,\n{text}\n\n{frame}\n{motto}\n" for text in TEXTS]
        endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
        assert kinds(bodies[0], "jo@x.example", endings)[-1][0] == kind


def test_empty_month_teaches_no_ending() -> None:
    assert learn_endings([]) == RepeatedEndings()
    assert learn(month_with_footer()) != RepeatedEndings()


@given(st.randoms(use_true_random=False))
def test_order_of_messages_does_not_matter(chance: random.Random) -> None:
    messages = [*month_with_footer(), *month_with_footer()]
    first = learn(messages)
    chance.shuffle(messages)
    assert learn(messages) == first


def test_copies_of_one_message_teach_nothing() -> None:
    body = f"Dear all,\n{TEXTS[0]}{FOOTER}\n\nJo Roe\nHarbour office, room 5\n"
    copies = [(who, f"subject {n}", body) for n, who in enumerate(PEOPLE)]
    resent = [("jo@x.example", f"again {n}", body) for n in range(9)]
    assert learn(copies) == learn(resent) == RepeatedEndings()


def test_templates_of_a_bot_keep_their_differences() -> None:
    bodies = [f"Build {text}\n\nAll pass on https://ci.example\nGood night." for text in TEXTS]
    month = [("ci@x.example", f"build {n}", body) for n, body in enumerate(bodies)]
    assert kinds(bodies[0], "ci@x.example", learn(month))[0][1].startswith("Build The crane")


def test_frequent_answer_of_an_author_stays_text() -> None:
    bodies = [f"> {text}\nSeen.\n{text}\n\nApplied, thanks." for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    assert {kind for kind, _ in kinds(bodies[0], "jo@x.example", endings)} == {"quote", "text"}


def test_closing_above_a_learnt_signature_stays_text() -> None:
    bodies = [f"Hello,\n{text}\n\nBest regards,\nJo Roe\nroom 5" for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    found = kinds(bodies[0], "jo@x.example", endings)
    assert found[0][1].endswith("Best regards,")
    assert found[1] == ("signature", "Jo Roe\nroom 5")


def test_common_last_question_is_no_footer() -> None:
    month = [(who, f"s{n}", f"Hello,\n{TEXTS[n]}\n\nAny ideas?") for n, who in enumerate(PEOPLE)]
    endings = learn(month)
    assert {kind for kind, _ in kinds(month[0][2], PEOPLE[0], endings)} == {"text"}


def test_signature_above_a_quote_of_the_rest_is_learnt() -> None:
    attribution = "On Mon, 5 Jan 2026, Ann wrote:\n> The crane?\n> Why?"
    bodies = [f"Hello,\n{text}\n\nJo Roe\nHarbour office\n\n{attribution}" for text in TEXTS]
    endings = learn([("jo@x.example", f"s{n}", body) for n, body in enumerate(bodies)])
    found = kinds(bodies[0], "jo@x.example", endings)
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
def test_lines_that_differ_in_varying_parts_are_equal(one: str, other: str) -> None:
    assert hash_line(one) == hash_line(other)


@pytest.mark.parametrize(("one", "other"), OTHER_LINES)
def test_lines_that_differ_in_words_are_others(one: str, other: str) -> None:
    assert hash_line(one) != hash_line(other)


OBJECTION = (
    "The patch makes every lift of the crane twice as slow.\n"
    "I object to committing it before this is fixed.\n"
    "See https://bugs.example.org/1234 for the list of numbers."
)
VICTIM = "vic@x.example"
VICTIMS = f"I measured the crane.\n\n{OBJECTION}\n"

#: Author, subject, body, day.
Mail = tuple[str, str, str, int]


def genuine(people: int = 8, each: int = 5) -> list[Mail]:
    return [
        (
            f"p{n}@x.example",
            f"topic {n} {k}",
            f"Hello,\n\nline {n}{k} of the crane.\n",
            k * 5 + n % 5,
        )
        for n in range(people)
        for k in range(each)
    ]


def forged(
    count: int, *, names: int = 100, days: int = 1, author: str = "", ending: str = OBJECTION
) -> list[Mail]:
    """Mail that ends with the victim's paragraph."""
    return [
        (
            author or f"f{n % names}@y.example",
            f"forged {n}",
            f"So {'x' * n}.\n\n{ending}\n",
            n % days,
        )
        for n in range(count)
    ]


def in_one_thread(mails: list[Mail]) -> list[Mail]:
    return [(author, "one thread", body, day) for author, _, body, day in mails]


@cases(
    "month, body",
    {
        "four names in an hour": ([*genuine(), *forged(4)], VICTIMS),
        "ten names over ten days": ([*genuine(), *forged(10, days=10)], VICTIMS),
        "a small month": ([*genuine(2, 3), *forged(5, days=5)], VICTIMS),
        "nobody else in the month": ([*forged(3, days=3)], VICTIMS),
        "nobody else, in an hour": ([(*one[:3], 3) for one in forged(9)], VICTIMS),
        "one thread": (in_one_thread([*genuine(2, 2), *forged(60, days=9)]), VICTIMS),
        "more names than people": ([*genuine(5, 30), *forged(60, days=25)], VICTIMS),
        "more mails than people's": ([*genuine(8, 5), *forged(200, names=3, days=25)], VICTIMS),
        "a flood on one day": ([*genuine(5, 5), *forged(90)], VICTIMS),
        "under the victim's name": ([*genuine(), *forged(12, days=12, author=VICTIM)], VICTIMS),
        "under the victim's name, without sentences": (
            [(VICTIM, f"s{n}", f"On {n}.\n\n{'z' * n}", n) for n in range(20)]
            + forged(6, days=6, author=VICTIM, ending="Jo Roe\nroom 5\nhttps://x.example"),
            "I resign.\n\nJo Roe\nroom 5\nhttps://x.example\n",
        ),
        "under the victim's name, above a quote": (
            [
                (VICTIM, f"s{n}", f"So {n}.\n\n{OBJECTION}\n\nOn 2026-01-05, Ann wrote:\n> a", n)
                for n in range(5)
            ],
            f"I measured.\n\n{OBJECTION}\n\nOn 2026-01-05, Ann wrote:\n> a",
        ),
        "all text of a mail": ([*genuine(1, 1), *forged(40, days=20)], f"{OBJECTION}\n"),
        "the first paragraph of a mail": (
            [*genuine(1, 1), *forged(40, days=20, ending=f"{OBJECTION}\n\nSo long.")],
            f"{OBJECTION}\n\nSo long.\n",
        ),
        "a decision in each mail": (
            [
                (VICTIM, f"s{n}", f"Good {n}.\n\nNacked-by: Vic <vic@x.example>", n)
                for n in range(9)
            ],
            "Fine.\n\nNacked-by: Vic <vic@x.example>",
        ),
    },
)
def test_words_of_a_victim_stay_text(month: list[Mail], body: str) -> None:
    mails = [*month, (VICTIM, "objection", body, 3)]
    learnt = learn_from(mails)
    found = {kind for kind, _ in kinds(body, VICTIM, learnt)}
    assert found <= {"text", "quote", "attribution"}


def under_own_name(ending: str) -> list[Mail]:
    """Mail under the victim's name, equal only in the last lines."""
    author = "vic.roe@x.example"
    return [(author, f"s{n}", f"On {n}.\n\n{'z' * n}\n\n{ending}\n", n) for n in range(9)]


def by_many(ending: str) -> list[Mail]:
    """Nearly all mail of a month: it ends like the victim's last mail, not like her others."""
    others = [(VICTIM, f"s{n}", f"Line {n}.\n\nGood {'x' * n}.", n) for n in range(9)]
    return [*forged(90, days=20, ending=ending), *others]


def by_all(ending: str) -> list[Mail]:
    """A month in which only the attackers write."""
    return forged(9, days=9, ending=ending)


#: The victim's last lines, and the other mail of the month.
LAST_WORDS: dict[str, tuple[str, Callable[[str], list[Mail]]]] = {
    "a sentence with a link": (OBJECTION, by_all),
    "a link of several, with a sentence": (
        "Crane: https://x.example/list\nThe boat is of no use to any of us.", by_all,
    ),
    "an answer that the victim gives once": (
        "Not mine. Ask on the mailing list of the crane.", by_many,
    ),
    "a link": ("https://bugs.example.org/12", under_own_name),
    "a line of code": ("crane = Crane()\nVic Roe", under_own_name),
    "a command": ("vic$ crane --lift; done", under_own_name),
    "a prompt": ("vic@crane:~$", under_own_name),
    "an error": ("vic: error::lift(12) {no key}", under_own_name),
    "a refusal below the name": ("Vic Roe\n\nNAK", under_own_name),
    "an approval with an address": ("+1 vic@x.example", under_own_name),
    "an address of somebody else": ("dee@x.example", under_own_name),
    "the name of somebody else": ("Dee Moe\nHarbour office", under_own_name),
    "three short lines": ("Key: lost\nCrane: broken\nBoat: sunk", under_own_name),
}  # fmt: skip


@pytest.mark.parametrize("name", LAST_WORDS)
def test_last_words_of_a_victim_stay_text(name: str) -> None:
    ending, others = LAST_WORDS[name]
    author = "vic.roe@x.example" if others is under_own_name else VICTIM
    body = f"I measured the crane.\n\n{ending}\n"
    learnt = learn_from([*others(ending), (author, "objection", body, 3)])
    found = [text for kind, text in kinds(body, author, learnt) if kind == "text"]
    assert ending.replace("Vic Roe", "").strip() in "\n".join(found)


def test_footer_that_changed_within_the_month_takes_no_text() -> None:
    info = "-- \nTo subscribe to the mailing list: https://lists.x.example"
    other = info.replace("lists.", "new.")
    month = [
        (f"p{n}@x.example", f"s{n}", f"Hello,\n\nline {'x' * n}.\n{info if n < 9 else other}", n)
        for n in range(18)
    ]
    for author, _, body, _ in month:
        assert ("text", f"Hello,\n\n{body.split()[1]} {body.split()[2]}") in kinds(
            body, author, learn_from(month)
        )


def test_signature_of_another_takes_no_text_of_its_owner() -> None:
    signed = "Vic Roe\nHarbour office, room 5"
    month = forged(40, days=20, ending=signed)
    body = (
        f"I measured.\n\n{signed}\n\nThe {signed.splitlines()[1].lower()}\nis where the key is.\n"
    )
    learnt = learn_from([*month, ("vic@x.example", "s", body, 3)])
    text = [found for kind, found in kinds(body, "vic@x.example", learnt) if kind == "text"]
    assert text[0].startswith("I measured.")
    assert text[-1].endswith("is where the key is.")


def learn_from(mails: list[Mail]) -> RepeatedEndings:
    return learn_endings(
        EndedMail(author, subject, ending_of(text, segment_body(text)), day)
        for author, subject, text, day in mails
    )


def test_learnt_ending_stays_in_the_index_of_words() -> None:
    ending = f"The crane is slow.\n{FOOTER.strip()}"
    body = f"I measured the crane.\n\n{ending}\n"
    learnt = learn_from([*forged(40, days=20, ending=ending), (VICTIM, "objection", body, 3)])
    assert ("footer", ending) in kinds(body, VICTIM, learnt)
    assert readable_text(body, segment_body(body)) == body


def test_readable_text_has_signatures_without_noise() -> None:
    body = (
        "Hello.\n> quoted\nAnswer.\n\nJo Roe\nSent from my iPhone\n"
        "-----BEGIN PGP SIGNATURE-----\n\niQEcBAEBAgAGBQ\n-----END PGP SIGNATURE-----\n"
        "_______________________________________________\nDev mailing list\nDev@lists.example.org\n"
    )
    text = readable_text(body, segment_body(body, "Jo Roe"))
    assert text.split() == ["Hello.", "Answer.", "Jo", "Roe"]
