"""Footers of list managers, services and companies, and what only looks like them."""

import pytest

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
def test_what_programs_add_is_footer(footer: str) -> None:
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
def test_what_people_write_stays(text: str) -> None:
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
def test_what_phones_add_is_signature(line: str) -> None:
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
