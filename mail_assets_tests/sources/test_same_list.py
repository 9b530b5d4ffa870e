"""One list, kept by different programs, gives the same messages.

But for the last line end of a message: an mbox needs one.
"""

from pathlib import Path

import pytest

from mail_assets.mail.archive.mbox import RawMessage, split_archive
from mail_assets.mail.message.parse import parse_message
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.mboxrd import format_message
from mail_assets.sources.open import open_source
from mail_assets.sources.source import Fetched
from mail_assets_tests.sources.inboxes import add_mails, make_repository
from mail_assets_tests.sources.mails import APRIL_DATE, mail

RECEIVED = "Received: from a by b; Tue, 02 Apr 2024 10:00:00 +0000\n"
MAILS = [
    mail(1, body="From the shore\n\n>From afar\n"),
    mail(2, APRIL_DATE, more="In-Reply-To: <1@example.org>\n"),
    mail(3, APRIL_DATE, "no end of line", "Content-Type: text/plain; charset=utf-8\n"),
    mail(4, more=RECEIVED),
    mail(5, "", more=RECEIVED),
]


def keep(kind: str, folder: Path) -> None:
    """Keep all messages in a folder or file, as programs of a kind do."""
    if kind == "mbox":
        folder.write_bytes(b"".join(map(format_message, MAILS)))
    elif kind == "public-inbox":
        add_mails(make_repository(folder / "git/0.git"), MAILS)
    else:
        names = {"maildir": "new/{}.M1.host", "eml": "{}.eml"}
        for name in ("cur", "new", "tmp") if kind == "maildir" else (".",):
            (folder / name).mkdir(parents=True)
        for number, raw in enumerate(MAILS):
            (folder / names[kind].format(number)).write_bytes(raw)


@pytest.mark.parametrize("kind", ["mbox", "maildir", "eml", "public-inbox"])
def test_a_list_has_the_same_messages_wherever_it_is_kept(tmp_path: Path, kind: str) -> None:
    keep(kind, tmp_path / "dev")
    source = open_source(
        "dev", str(tmp_path / "dev"), start="2024-01", options=HttpOptions(), cache=tmp_path
    )
    found = {}
    for month in source.versions():
        fetched = source.fetch(month, tmp_path / month.month)
        assert isinstance(fetched, Fetched)
        for raw in split_archive(fetched.path, "mboxrd"):
            message = parse_message(raw, month=month.month, dialect="mboxrd")
            assert f"{message.sent_at:%Y-%m}" == month.month
            found[message.message_id] = (
                month.month,
                message.content_hash,
                message.body_text.rstrip(),
            )
    assert found == {
        f"{number}@example.org": (month, hashed, text)
        for number, (month, hashed, text) in enumerate(expected(), 1)
    }


def expected() -> list[tuple[str, str, str]]:
    """Return month, content hash and text of each message, parsed alone."""
    months = ["2024-03", "2024-04", "2024-04", "2024-04", "2024-04"]
    rows = []
    for raw, month in zip(MAILS, months, strict=True):
        one = RawMessage(0, len(raw), b"", raw, False, False)
        message = parse_message(one, month=month, dialect="plain")
        rows.append((month, message.content_hash, message.body_text.rstrip()))
    return rows
