"""A list kept by different programs gives equal messages and threads.

Except for the last line end of a message: an mbox needs one.
"""

from pathlib import Path

import pytest

from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.mbox import RawMessage, find_dialect, split_archive
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.threads import ThreadMessage, ThreadNode, build_trees
from mail_assets.sources.message_source import format_message
from mail_assets.sources.open import open_source
from mail_assets.sources.source import Fetched, HttpOptions
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
def test_list_has_the_same_messages_in_every_source(tmp_path: Path, kind: str) -> None:
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


THREADED = [
    (1, "", "Which way is the wind?\n\nFrom the west, I think.\n"),
    (2, "<1@example.org>", "> Which way is the wind?\n\nFrom the south, voilà.\n"),
    (3, "<1@example.org> <2@example.org>", "Thank you.\n"),
    (4, "", "Something else.\n"),
]


def as_fields(number: int, references: str) -> str:
    """Return the fields that every archiver keeps."""
    last = references.rpartition(" ")[2]
    return (
        f"Date: Tue, 05 Mar 2024 10:0{number}:00 +0000\nSubject: the wind\n"
        f"Message-ID: <{number}@example.org>\n"
        + (f"In-Reply-To: {last}\nReferences: {references}\n" if references else "")
    )


def as_raw(number: int, references: str, text: str) -> bytes:
    return (
        "From: Ann Lee <Ann@example.org>\nTo: wind@lists.example.org\n"
        f"{as_fields(number, references)}MIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=iso-8859-1\n"
        f"Content-Transfer-Encoding: 8bit\n\n{text}"
    ).encode("latin-1")


def as_pipermail(number: int, references: str, text: str) -> bytes:
    """Return a message as Mailman 2 writes it into its text archive."""
    return (
        f"From Ann at example.org  Tue Mar  5 10:0{number}:00 2024\n"
        f"From: Ann at example.org (Ann Lee)\n{as_fields(number, references)}\n"
        + text.replace("\nFrom ", "\n>From ")
        + "\n"
    ).encode()


def keep_threaded(kind: str, folder: Path) -> None:
    raws = [as_raw(*one) for one in THREADED]
    if kind == "mboxrd":
        folder.mkdir()
        (folder / "wind.2024-03.mbox").write_bytes(b"".join(map(format_message, raws)))
    elif kind == "public-inbox":
        add_mails(make_repository(folder / "git/0.git"), raws)
    else:
        folder.mkdir()
        archive = b"\n".join(as_pipermail(*one) for one in THREADED)
        (folder / "2024-March.txt").write_bytes(archive)


def read_threaded(kind: str, folder: Path) -> tuple[dict[str, str], list[ThreadNode]]:
    """Return the content hashes by Message-ID, and the threads."""
    keep_threaded(kind, folder / kind)
    source = open_source(
        "wind", str(folder / kind), start="2024-01", options=HttpOptions(), cache=folder
    )
    [month] = source.versions()
    fetched = source.fetch(month, folder / f"{kind}.fetched")
    assert isinstance(fetched, Fetched)
    with unpacked(fetched.path) as data:
        dialect = find_dialect(data) or ""
    assert dialect == ("pipermail" if kind == "pipermail" else "mboxrd")
    messages = [
        parse_message(raw, month=month.month, dialect=dialect)
        for raw in split_archive(fetched.path, dialect)
    ]
    threaded = [
        ThreadMessage(m.message_id, m.references, m.in_reply_to, m.sent_at.timestamp())
        for m in messages
    ]
    return {m.message_id: m.content_hash for m in messages}, build_trees(threaded)


def test_all_renderings_give_equal_ids_hashes_and_threads(tmp_path: Path) -> None:
    mboxrd, inbox, pipermail = (
        read_threaded(kind, tmp_path) for kind in ("mboxrd", "public-inbox", "pipermail")
    )
    assert len(mboxrd[0]) == len(THREADED)
    assert len({node.thread_id for node in mboxrd[1]}) == 2
    assert mboxrd == inbox == pipermail
