"""Footers by known phrases, learnt endings, notes of Mailman, and lookalikes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.footers import (
    NO_ENDINGS,
    RepeatedEndings,
    begins_ending,
    find_ending_heads,
    hash_line,
    learn_endings,
)
from mail_assets.mail.body.segments import ending_of, segment_body
from mail_assets_tests.mail.kinds import letters

TEXT = "The crane is broken.\n\n"
RULE = "-" * 60
UNDERSCORES = "_" * 47


@pytest.mark.parametrize(
    "footer",
    [
        pytest.param(
            f"{RULE}\nTo unsubscribe, e-mail: dev-unsubscribe@example.org\n"
            "For additional commands, e-mail: dev-help@example.org",
            id="ezmlm",
        ),
        pytest.param(
            f"{RULE}\nCranes for sale, lift more for less\nhttps://p.example/1\n"
            f"{UNDERSCORES}\nDev mailing list\nDev@lists.example.org\nhttps://lists.example.org/dev",
            id="an advert above Mailman's footer",
        ),
        pytest.param(
            "-- \nYou received this message because you are subscribed to the Google Groups "
            '"Cranes" group.\nTo unsubscribe from this group, send email to x@example.org',
            id="Google Groups",
        ),
        pytest.param(
            "Yahoo! Groups Links\n<*> To visit your group on the web, go to:\n    https://x.example",
            id="Yahoo! Groups",
        ),
        pytest.param(
            "-=-=-=-=-=-=-=-\nGroups.io Links: You receive all messages sent to this group.",
            id="groups.io",
        ),
        pytest.param(
            "You are receiving this mail because:\nYou are watching all bug changes.", id="Bugzilla"
        ),
        pytest.param(
            "—\nReply to this email directly or view it on GitHub:\nhttps://github.example/1",
            id="GitHub",
        ),
        pytest.param(
            "-- \nReply to this email directly or view it on GitHub:\nhttps://github.example/1\n"
            "You are receiving this because you are subscribed to this thread.\n\n"
            "Message ID: <cranes/lift/issues/1/2@github.example>",
            id="GitHub, with an id",
        ),
        pytest.param(
            "This message was sent by Atlassian Jira\n(v8.20.10#820010)",
            id="Jira",
        ),
        pytest.param(
            "To unsubscribe from this list: send the line \"unsubscribe cranes\" in\nthe body of a "
            "message to majordomo@example.org",
            id="Majordomo",
        ),
        pytest.param(
            "This e-mail and any attachments are confidential. If you are not the\nintended "
            "recipient, please delete it.",
            id="a disclaimer",
        ),
        pytest.param(
            "Diese E-Mail enthält vertrauliche Informationen. Wenn Sie nicht der\nrichtige "
            "Empfänger sind, vernichten Sie diese Mail.",
            id="a disclaimer in German",
        ),
        pytest.param(
            "Ce message est confidentiel. Si vous n'êtes pas le destinataire,\ndétruisez-le.",
            id="a disclaimer in French",
        ),
        pytest.param(
            "No virus found in this incoming message.\nChecked by AVG - https://avg.example",
            id="a virus scanner",
        ),
    ],
)  # fmt: skip
def test_lines_added_by_programs_are_footer(footer: str) -> None:
    assert letters(TEXT + footer) == "tt" + "f" * len(footer.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "To unsubscribe was harder\nthan I thought.",
        "This e-mail is about cranes.",
        "FAIL: test_lift\n" + "-" * 70 + "\nTraceback (most recent call last):\n  File x",
        "Abstract\n--------\nA common complaint.",
        "You are receiving more\nthan you send.",
        "The information in this message\nis wrong.",
        "This one failed.\n\nMessage ID: <1@example.org>",
    ],
)
def test_lines_of_people_are_no_footer(text: str) -> None:
    assert set(letters(TEXT + text)) == {"t"}


@pytest.mark.parametrize(
    "line",
    [
        "Sent from my iPhone", "Sent from Yahoo Mail on Android", "Get Outlook for iOS",
        "Von meinem iPhone gesendet", "Gesendet von Mail für Windows", "Envoyé de mon iPhone",
        "Envoyé depuis mon téléphone", "Sendt fra min iPhone", "Skickat från min iPhone",
        "Enviado desde mi iPhone", "Enviado do meu iPhone", "Inviato da iPhone",
        "Wysłane z iPhone'a", "Verzonden vanaf mijn iPhone", "Lähetetty iPhonesta",
        "Odesláno z iPhonu", "Отправлено с iPhone", "发自我的 iPhone", "iPhoneから送信",
        "iPhone'umdan gönderildi", "Στάλθηκε από το iPhone μου", "Sent via BlackBerry by AT&T"
    ],
)  # fmt: skip
def test_lines_added_by_phones_are_signature(line: str) -> None:
    assert letters(f"{TEXT}{line}\n") == "ttst"
    assert letters(f"{TEXT}Jo Roe\n{line}\n")[3] == "s"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("hi\n- -- \nJo", "tss"),
        ("hi\n--=20\nJo", "tss"),
        ("hi\n—\nJo", "tss"),
        ("hi\n--\nJo\n\n\n\n" + UNDERSCORES + "\nDo You Yahoo!?\nhttps://mail.example" + "\n" * 8,
         "tsssssfff" + "t" * 8),
        ("a.c:1:int x\n--\nb.c:1:int x\n--\n" + "c.c:1:int x\n" * 12, "t" * 17),
    ],
)  # fmt: skip
def test_damaged_separators_have_short_blocks(body: str, expected: str) -> None:
    assert letters(body) == expected


PARAGRAPH = "A line of a paragraph that is long enough to go on below."


@pytest.mark.parametrize(
    "line",
    [
        *("-- ", "—", "____", "Sent from my phone", "To unsubscribe, visit", "the lists list"),
        *("Отправлено с iPhone", "ОТПРАВЛЕНО С IPHONE", "Надіслано з iPhone", "Στάλθηκε από x"),
        *("נשלח מה-x", "أرسلت من x", "تم الإرسال من x", "发自我的 x", "從我的 x", "从我的 x"),
        *("傳送自 x", "發自我的 x", "私の x から送信", "나의 x에서 보냄", "나의 x에서 보냈습니다"),
        *("名 mailing list -- x@example.org", "“This message is for the addressee"),
    ],
)
def test_ending_of_any_script_is_a_candidate(line: str) -> None:
    assert begins_ending([line.strip()], 0)
    assert find_ending_heads(["", line.strip()], [1]) == [1]


@pytest.mark.parametrize("line", ["Jo", "漢字", "да нет", "είναι", "- an item", "# a comment"])
def test_most_lines_are_none(line: str) -> None:
    assert find_ending_heads([line], [0]) == []


def test_phrase_inside_a_paragraph_is_no_footer() -> None:
    texts = [PARAGRAPH, "To unsubscribe, visit", PARAGRAPH, "----", "To unsubscribe, visit"]
    assert find_ending_heads(texts, [*range(5)]) == [3, 4]


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


def test_nothing_is_learnt_of_nothing() -> None:
    assert learn_endings([]) == NO_ENDINGS
    assert learn(month_with_footer()) != NO_ENDINGS


@given(st.randoms(use_true_random=False))
def test_order_of_messages_does_not_matter(chance: random.Random) -> None:
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
def test_lines_that_differ_in_varying_parts_are_equal(one: str, other: str) -> None:
    assert hash_line(one) == hash_line(other)


@pytest.mark.parametrize(("one", "other"), OTHER_LINES)
def test_lines_that_differ_in_words_are_others(one: str, other: str) -> None:
    assert hash_line(one) != hash_line(other)


PLACE = "/pipermail/dev/attachments/20040105/5e5fcbf6/attachment.html"
STORED = f"http://lists.example.org{PLACE}"
NEXT = "-------------- next part --------------"


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(f"{NEXT}\nAn HTML attachment was scrubbed...\nURL: <{STORED}>", id="en"),
        pytest.param(
            "------------ próxima parte ------------\n"
            f"Se ha borrado un adjunto en formato HTML...\nURL: {STORED}",
            id="es",
        ),
        pytest.param(
            "-------------- section suivante --------------\n"
            "Une pièce jointe autre que texte a été nettoyée...\n"
            f"Nom: grue.png\nType: image/png\nTaille: 5 octets\n"
            f"Desc: non disponible\nUrl: {STORED}",
            id="fr",
        ),
        pytest.param(
            "----------- следующая часть -----------\n"
            f"Вложение в формате HTML было извлечено&hellip;\nURL: <{STORED}>",
            id="ru",
        ),
        pytest.param(f"{NEXT}\nHTMLの添付ファイルを保管しました...\nURL: {STORED}", id="ja"),
        pytest.param(f"━━━━━━phần kế tiếp━━━━━━\nMột tập tin đã bị lau...\nURL: {STORED}", id="vi"),
        pytest.param(f"An HTML attachment was scrubbed...\nURL: <{STORED}>", id="a note alone"),
        pytest.param(
            f"Un allegato HTML è stato rimosso...\nURL: <{PLACE}>",
            id="it, a place on the same host",
        ),
        pytest.param(f"Ein Dateianhang wurde abgetrennt...\nURL: <{STORED}>", id="de, alone"),
        pytest.param(f"Skipped content of type multipart/alternative{NEXT}", id="skipped"),
        pytest.param(
            "Omitido el contenido de tipo multipart/mixed------------ próxima parte ------------\n"
            f"Se ha borrado un mensaje adjunto...\nURL: {STORED}",
            id="skipped, es",
        ),
    ],
)
def test_mailmans_note_on_a_part_is_footer(note: str) -> None:
    lines = len(note.split("\n"))
    assert letters(TEXT + note) == "tt" + "f" * lines


@pytest.mark.parametrize(
    "text",
    [
        "Look what I found...\nURL: https://example.org/attachments.html",
        "He said this was the next part ------------",
        "One thing leads to another...\nNote: it stays text.\n",
        f"Wait...\nIt is not there:\nURL: <{STORED}>",
    ],
)
def test_notes_of_people_stay_text(text: str) -> None:
    assert set(letters(TEXT + text)) == {"t"}


def test_text_of_the_next_part_stays_text() -> None:
    assert letters(f"{TEXT}{NEXT}\nAlso the winch.\nURL: https://example.org/winch") == "ttftt"
