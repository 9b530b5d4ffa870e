"""What Mailman writes into the mail of its archive in place of parts, in the list's language."""

import pytest

from mail_assets_tests.mail.kinds import letters

TEXT = "The crane is broken.\n\n"
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
def test_what_mailman_writes_in_place_of_a_part_is_footer(note: str) -> None:
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
def test_what_people_write_stays_text(text: str) -> None:
    assert set(letters(TEXT + text)) == {"t"}


def test_the_text_of_the_next_part_stays_text() -> None:
    assert letters(f"{TEXT}{NEXT}\nAlso the winch.\nURL: https://example.org/winch") == "ttftt"
