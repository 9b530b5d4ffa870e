"""Footers with known phrases, notes of Mailman, and similar lines of people."""

import pytest

from mail_assets.mail.body.footers import begins_ending, find_ending_heads
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.kinds import letters

TEXT = "The crane is broken.\n\n"
PLACE = "/pipermail/dev/attachments/20040105/5e5fcbf6/attachment.html"
STORED = f"http://lists.example.org{PLACE}"
RULE = "-" * 60
UNDERSCORES = "_" * 47


@cases(
    "footer",
    {
        "ezmlm": (
            f"{RULE}\nTo unsubscribe, e-mail: dev-unsubscribe@example.org\n"
            "For additional commands, e-mail: dev-help@example.org"
        ),
        "Google Groups, short": (
            "To unsubscribe from this group and stop receiving emails from it, send an email to "
            "dev+unsubscribe@example.org."
        ),
        "its own, short": "-- \nMailing list info: https://lists.example.org/dev",
        "an advert above Mailman's footer": (
            f"{RULE}\nCranes for sale, lift more for less\nhttps://p.example/1\n"
            f"{UNDERSCORES}\nDev mailing list\nDev@lists.example.org\nhttps://lists.example.org/dev"
        ),
        "Google Groups": (
            "-- \nYou received this message because you are subscribed to the Google Groups "
            '"Cranes" group.\nTo unsubscribe from this group, send email to x@example.org'
        ),
        "Yahoo! Groups": (
            "Yahoo! Groups Links\n<*> To visit your group on the web, go to:\n    https://x.example"
        ),
        "groups.io": (
            "-=-=-=-=-=-=-=-\nGroups.io Links: You receive all messages sent to this group."
        ),
        "Bugzilla": "You are receiving this mail because:\nYou are watching all bug changes.",
        "GitHub": "—\nReply to this email directly or view it on GitHub:\nhttps://github.example/1",
        "GitHub, with an id": (
            "-- \nReply to this email directly or view it on GitHub:\nhttps://github.example/1\n"
            "You are receiving this because you are subscribed to this thread.\n\n"
            "Message ID: <cranes/lift/issues/1/2@github.example>"
        ),
        "Jira": "This message was sent by Atlassian Jira\n(v8.20.10#820010)",
        "Majordomo": (
            'To unsubscribe from this list: send the line "unsubscribe cranes" in\nthe body of a '
            "message to majordomo@example.org"
        ),
        "Majordomo below a rule of R's lists": (
            f"{'-.' * 39}-\nr-help mailing list -- Read https://www.example.org/FAQ.html\n"
            f'Send "info" or "help" to r-help-request@example.org\n{"_." * 39}_'
        ),
        "an anonymous service": (
            f"{RULE}\nTo find out more about the anon service, send mail to help@example.org.\n"
            "Please report any problems to admin@anon.example.org."
        ),
        "a disclaimer in Polish": (
            "Ta wiadomosc jest przeznaczona dla okreslonego adresata i moze zawierac informacje\n"
            "poufne."
        ),
        "a disclaimer on privileged information": (
            f"{'=' * 80}\nThe privileged confidential information contained in this email is\n"
            "intended for use only by the addressees."
        ),
        "a disclaimer": (
            "This e-mail and any attachments are confidential. If you are not the\nintended "
            "recipient, please delete it."
        ),
        "a disclaimer in German": (
            "Diese E-Mail enthält vertrauliche Informationen. Wenn Sie nicht der\nrichtige "
            "Empfänger sind, vernichten Sie diese Mail."
        ),
        "a disclaimer in Chinese, then in English": (
            "本邮件及其附件含有公司的商业秘密信息，仅限于发送给上面地址中列出的个人。如果您错收了本邮件，请删除。\n"
            "This email and its attachments contain confidential information of the company."
        ),
        "a disclaimer below a rule and the company's name": (
            f"{'_' * 32}\nAcme\n\n\n本电子邮件含有公司的保密信息，仅限于邮件指明的收件人使用。"
        ),
        "a disclaimer in Japanese": (
            "このメールには機密情報が含まれている場合があります。\n誤って受信された場合は削除してください。"
        ),
        "a disclaimer in Russian": (
            "Данное сообщение конфиденциально. Если Вы не адресат,\nудалите его."
        ),
        "a disclaimer in Swedish": (
            "Detta meddelande är konfidentiellt. Om du inte är rätt mottagare,\nradera det."
        ),
        "a disclaimer in French": (
            "Ce message est confidentiel. Si vous n'êtes pas le destinataire,\ndétruisez-le."
        ),
        "a virus scanner": "No virus found in this incoming message.\nChecked by AVG - https://avg.example",
    },
)
def test_lines_added_by_programs_are_footer(footer: str) -> None:
    assert letters(TEXT + footer) == "tt" + "f" * len(footer.split("\n"))


@pytest.mark.parametrize("text", [
    "To unsubscribe was harder\nthan I thought.",
    "This e-mail is about cranes.",
    "To find out more about the anon crane, send mail to Jo.",
    "FAIL: test_lift\n" + "-" * 70 + "\nTraceback (most recent call last):\n  File x",
    "Abstract\n--------\nA common complaint.",
    "You are receiving more\nthan you send.",
    "The information in this message\nis wrong.",
    "This one failed.\n\nMessage ID: <1@example.org>",
    "Look what I found...\nURL: https://example.org/attachments.html",
    "He said this was the next part ------------",
    "One thing leads to another...\nNote: it stays text.\n",
    f"Wait...\nIt is not there:\nURL: <{STORED}>",
])  # fmt: skip
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


@pytest.mark.parametrize("line", [
    *("-- ", "—", "____", "Sent from my phone", "To unsubscribe, visit", "the lists list"),
    *("Отправлено с iPhone", "ОТПРАВЛЕНО С IPHONE", "Надіслано з iPhone", "Στάλθηκε από x"),
    *("נשלח מה-x", "أرسلت من x", "تم الإرسال من x", "发自我的 x", "從我的 x", "从我的 x"),
    *("傳送自 x", "發自我的 x", "私の x から送信", "나의 x에서 보냄", "나의 x에서 보냈습니다"),
    *("名 mailing list -- x@example.org", "“This message is for the addressee"),
])  # fmt: skip
def test_ending_of_any_script_is_a_candidate(line: str) -> None:
    assert begins_ending([line.strip()], 0)
    assert find_ending_heads(["", line.strip()], [1]) == [1]


@pytest.mark.parametrize("line", ["Jo", "漢字", "да нет", "είναι", "- an item", "# a comment"])
def test_ordinary_lines_are_no_footer(line: str) -> None:
    assert find_ending_heads([line], [0]) == []


def test_phrase_inside_a_paragraph_is_no_footer() -> None:
    texts = [PARAGRAPH, "To unsubscribe, visit", PARAGRAPH, "----", "To unsubscribe, visit"]
    assert find_ending_heads(texts, [*range(5)]) == [3, 4]


NEXT = "-------------- next part --------------"


@cases("note", {
    "en": f"{NEXT}\nAn HTML attachment was scrubbed...\nURL: <{STORED}>",
    "es": ("------------ próxima parte ------------\n"
           f"Se ha borrado un adjunto en formato HTML...\nURL: {STORED}"),
    "fr": ("-------------- section suivante --------------\n"
           "Une pièce jointe autre que texte a été nettoyée...\n"
           f"Nom: grue.png\nType: image/png\nTaille: 5 octets\n"
           f"Desc: non disponible\nUrl: {STORED}"),
    "ru": ("----------- следующая часть -----------\n"
           f"Вложение в формате HTML было извлечено&hellip;\nURL: <{STORED}>"),
    "ja": f"{NEXT}\nHTMLの添付ファイルを保管しました...\nURL: {STORED}",
    "vi": f"━━━━━━phần kế tiếp━━━━━━\nMột tập tin đã bị lau...\nURL: {STORED}",
    "a note alone": f"An HTML attachment was scrubbed...\nURL: <{STORED}>",
    "it, a place on the same host": f"Un allegato HTML è stato rimosso...\nURL: <{PLACE}>",
    "de, alone": f"Ein Dateianhang wurde abgetrennt...\nURL: <{STORED}>",
    "skipped": f"Skipped content of type multipart/alternative{NEXT}",
    "skipped, es": (
        "Omitido el contenido de tipo multipart/mixed------------ próxima parte ------------\n"
        f"Se ha borrado un mensaje adjunto...\nURL: {STORED}"
    ),
})  # fmt: skip
def test_mailmans_note_on_a_part_is_footer(note: str) -> None:
    lines = len(note.split("\n"))
    assert letters(TEXT + note) == "tt" + "f" * lines


def test_text_of_the_next_part_stays_text() -> None:
    assert letters(f"{TEXT}{NEXT}\nAlso the winch.\nURL: https://example.org/winch") == "ttftt"


def test_mail_right_below_a_disclaimer_is_quoted() -> None:
    disclaimer = "This e-mail is confidential. If you are not the intended recipient, delete it."
    fields = (
        "From: Sam <sam@example.org>\nSent: Monday, January 5, 2026 10:11 AM\nTo: Jo\nSubject: x"
    )
    assert letters(f"{TEXT}{disclaimer}\n{'_' * 32}\n{fields}\n\nold") == "ttfaaaaaqq"
