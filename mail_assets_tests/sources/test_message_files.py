"""Maildir folders and folders of .eml files."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
import zstandard

from mail_assets.mail.archive.mbox import split_mbox
from mail_assets.mail.message.parse import parse_message
from mail_assets.sources import message_files
from mail_assets.sources.message_files import MessageFiles
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError, Unchanged
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    fetch_all,
    fetch_months,
    mail,
    open_list,
)


def open_at(folder: Path, kind: str = "") -> ArchiveSource:
    return open_list(folder, folder.parent / "cache", kind)


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    """As Dovecot writes it: unique names, flags after `:2,`, sizes, and its own files."""
    folder = tmp_path / "Mail"
    for name in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp"):
        (folder / name).mkdir(parents=True)
    for name, raw in {
        "cur/1709632900.M2P7.host,S=99,W=103:2,S": mail(2),
        "cur/1709632800.M1P7.host:2,": mail(1),
        "new/1711965600.M3P7.host": mail(3, APRIL_DATE),
        "tmp/1711965601.M4P7.host": mail(4),
        ".Sent/cur/1709632800.M5P7.host:2,S": mail(5),
        "dovecot-uidlist": b"3 V1\n",
        "cur/.nfs0001": b"x",
    }.items():
        (folder / name).write_bytes(raw)
    return folder


def test_maildir_is_detected_and_ordered_by_delivery(maildir: Path, tmp_path: Path) -> None:
    months = fetch_months(open_at(maildir), tmp_path)
    assert months == {"2024-03": [mail(1), mail(2)], "2024-04": [mail(3, APRIL_DATE)]}
    assert fetch_months(open_at(maildir, "maildir"), tmp_path) == months


def test_flags_and_the_move_from_new_to_cur_change_nothing(maildir: Path, tmp_path: Path) -> None:
    source = open_at(maildir)
    before = source.versions()
    for old, new in {
        "cur/1709632800.M1P7.host:2,": "cur/1709632800.M1P7.host:2,FRS",
        "new/1711965600.M3P7.host": "cur/1711965600.M3P7.host:2,S",
    }.items():
        (maildir / old).rename(maildir / new)
    assert isinstance(source.fetch(APRIL_2024, tmp_path / "april"), Fetched), "found where it went"
    again = open_at(maildir)
    assert again.versions() == before
    assert again.fetch(MARCH_2024, tmp_path / "x", before[MARCH_2024]) == Unchanged(
        before[MARCH_2024], maildir.as_uri()
    )


def move_after_listings(
    monkeypatch: pytest.MonkeyPatch, moves: Iterator[tuple[Path, Path]]
) -> None:
    """Move a file after each listing of a folder, as long as there are moves."""
    listed = message_files._entries

    def list_and_move(folder: Path) -> "list[os.DirEntry[str]]":
        found = listed(folder)
        for old, new in islice(moves, 1):
            old.rename(new)
        return found

    monkeypatch.setattr(message_files, "_entries", list_and_move)


def test_files_that_move_during_listing_are_listed(
    maildir: Path, eml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_at(maildir).versions()
    seen = maildir / "cur/1711965600.M3P7.host:2,S"
    moves = [
        (maildir / "new/1711965600.M3P7.host", seen),
        (seen, maildir / "cur/1711965600.M3P7.host:2,RS"),
    ]
    move_after_listings(monkeypatch, iter(moves))
    assert open_at(maildir).versions() == before
    monkeypatch.undo()
    move_after_listings(monkeypatch, iter([(eml / "z.eml", eml / "2024" / "z.eml")]))
    months = open_at(eml).versions()
    monkeypatch.undo()
    assert months == open_at(eml).versions()


def test_files_that_keep_moving_are_a_retryable_error(
    maildir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (maildir / f"cur/1709632800.M1P7.host:2,{flags}" for flags in ("", "S"))
    move_after_listings(monkeypatch, cycle([(one, other), (other, one)]))
    with pytest.raises(SourceError, match=r"list dev: .*M1P7.* was moved while") as found:
        open_at(maildir).versions()
    assert found.value.retryable


def test_cache_that_cannot_be_used_is_an_error_of_the_list(maildir: Path) -> None:
    (maildir.parent / "cache").write_bytes(b"no folder")
    with pytest.raises(SourceError, match=r"list dev: .*cache.*: Not a directory") as found:
        open_at(maildir).versions()
    assert found.value.retryable


def test_new_message_changes_its_own_month_alone(maildir: Path, tmp_path: Path) -> None:
    before = open_at(maildir).versions()
    (maildir / "new/1711965700.M6P7.host").write_bytes(mail(6, APRIL_DATE))
    after = open_at(maildir).versions()
    assert after[MARCH_2024] == before[MARCH_2024]
    assert after[APRIL_2024] != before[APRIL_2024]


def test_listing_opens_each_message_once(maildir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_at(maildir).versions()

    def refuse(*_: object) -> bytes:
        raise AssertionError("opened again")

    monkeypatch.setattr(MessageFiles, "_open", refuse)
    assert open_at(maildir).versions() == before


def test_message_removed_while_read_is_a_retryable_error(maildir: Path, tmp_path: Path) -> None:
    source = open_at(maildir)
    source.versions()
    (maildir / "new/1711965600.M3P7.host").unlink()
    with pytest.raises(SourceError, match=r"list dev, month 2024-04: .*M3P7\.host was") as found:
        source.fetch(APRIL_2024, tmp_path / "x")
    assert found.value.retryable
    assert [*tmp_path.glob("x*")] == []


@pytest.fixture
def eml(tmp_path: Path) -> Path:
    folder = tmp_path / "letters"
    (folder / "2024" / "b").mkdir(parents=True)
    (folder / "z.eml").write_bytes(mail(1).replace(b"\n", b"\r\n"))
    (folder / "2024" / "b" / "a letter.EML").write_bytes(mail(2))
    (folder / "2024" / "a.eml").write_bytes(mail(3, APRIL_DATE))
    return folder


def test_eml_files_are_found_in_all_subfolders(eml: Path, tmp_path: Path) -> None:
    assert fetch_months(open_at(eml), tmp_path) == {
        "2024-03": [mail(2), mail(1).replace(b"\n", b"\r\n")],
        "2024-04": [mail(3, APRIL_DATE)],
    }
    assert fetch_all(open_at(eml, "eml"), tmp_path) == fetch_all(open_at(eml), tmp_path)


def test_other_files_and_links_are_named_and_not_read(eml: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.eml").write_bytes(mail(9))
    (eml / "secret.eml").symlink_to(outside / "secret.eml")
    (eml / "more").symlink_to(outside)
    for number in range(5):
        (eml / f"notes{number}.txt").write_bytes(mail(9))
    (eml / ".hidden.eml").write_bytes(mail(9))
    source = open_at(eml, "eml")
    months = fetch_months(source, tmp_path)
    assert not any(b"<9@" in raw for found in months.values() for raw in found)
    assert sorted(source.new_remarks()) == [
        "left out, a link (2): more, secret.eml",
        "left out, no message (5): notes0.txt, notes1.txt, notes2.txt and 2 more",
    ]
    assert source.new_remarks() == []


def test_what_is_no_file_in_a_maildir_is_named(maildir: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(mail(9))
    (maildir / "cur/1709632801.M9P7.host:2,").symlink_to(tmp_path / "secret")
    (maildir / "cur/older").mkdir()
    os.mkfifo(maildir / "new/pipe")
    source = open_at(maildir)
    assert len(fetch_months(source, tmp_path)["2024-03"]) == 2
    assert sorted(source.new_remarks())[1:] == [
        "left out, a link (1): cur/1709632801.M9P7.host:2,",
        "left out, no message (2): cur/older, new/pipe",
    ]


def test_empty_file_is_left_out_by_name(eml: Path, tmp_path: Path) -> None:
    (eml / "nothing.eml").write_bytes(b"\n")
    source = open_at(eml)
    assert sum(map(len, fetch_months(source, tmp_path).values())) == 3
    assert source.new_remarks() == ["left out, empty (1): nothing.eml"]


def test_names_of_any_bytes_are_read(eml: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"gr\xfc\xdfe\tund\nso.eml")
    (eml / name).write_bytes(mail(4))
    months = fetch_months(open_at(eml), tmp_path)
    assert mail(4) in months["2024-03"]
    assert fetch_months(open_at(eml), tmp_path) == months


def test_missing_folder_is_an_error_and_no_empty_list(tmp_path: Path) -> None:
    for kind in ("", "maildir", "eml", "mbox", "public-inbox"):
        with pytest.raises(SourceError, match=r"list dev: .*nowhere"):
            open_at(tmp_path / "nowhere", kind).versions()


def test_folder_of_monthly_archives_is_no_eml_folder(eml: Path) -> None:
    (eml / "dev-2024-05.mbox").write_bytes(b"")
    assert [month.month for month in open_at(eml).versions()] == ["2024-05"]


# --- compressed files -------------------------------------------------------------------------

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", PACKED)
def test_compressed_files_of_maildir_are_unpacked(maildir: Path, tmp_path: Path, kind: str) -> None:
    for name, number in (("cur/1709632900.M8P1.host,S=250:2,SZ", 8), ("new/1709632901.M9P1.h", 9)):
        (maildir / name).write_bytes(PACKED[kind](mail(number)))
    months = fetch_months(open_at(maildir), tmp_path)
    assert months["2024-03"] == [mail(1), mail(2), mail(8), mail(9)]


@pytest.mark.parametrize("name", ["a.eml", "a.eml.gz", "A.EML.GZ", "7", "3.emlx.gz", "8."])
def test_compressed_single_files_are_unpacked(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(mail(1)))
    assert fetch_months(open_at(folder), tmp_path) == {"2024-03": [mail(1)]}


@pytest.mark.parametrize(("data", "remark"), [
    (gzip.compress(mail(9), mtime=0)[:-9],
     "left out, compressed data that is damaged or too large"),
    (b"Dovecot-LZ4\r\n\x9b\xc5" + bytes(50), "left out, compressed by lz4"),
    (b"CRYPTED\x03\x07" + bytes(50), "left out, encrypted"),
    (gzip.compress(b"", mtime=0), "left out, empty"),
], ids=["cut off", "lz4", "encrypted", "empty"])  # fmt: skip
def test_file_that_cannot_be_unpacked_is_named(maildir: Path, data: bytes, remark: str) -> None:
    (maildir / "new/1709632901.M9P1.h").write_bytes(data)
    source = open_at(maildir)
    assert {month.month for month in source.versions()} == {"2024-03", "2024-04"}
    assert any(line.startswith(f"{remark} (1): 1709632901.M9P1.h") for line in source.new_remarks())


# --- the time of delivery -----------------------------------------------------------------------


def dates(source: ArchiveSource, folder: Path) -> list[tuple[str, str]]:
    """Date and its origin of each message of a source, as the parser reads its archives."""
    found = []
    for month, archive in fetch_all(source, folder).items():
        for raw in split_mbox(archive, "mboxrd"):
            message = parse_message(raw, month=month, dialect="mboxrd")
            found.append((f"{message.sent_at:%Y-%m-%dT%H:%M:%S}", message.date_source))
    return found


@pytest.mark.parametrize(("date", "expected"), [
    ("", ("2024-03-05T10:01:40", "from_line")),
    ("never", ("2024-03-05T10:01:40", "from_line")),
    ("Thu, 01 Jan 1970 00:00:00 +0000", ("2024-03-05T10:01:40", "from_line")),
    (APRIL_DATE, ("2024-04-01T10:00:00", "date")),
])  # fmt: skip
def test_time_of_delivery_dates_a_message_without_one(
    tmp_path: Path, date: str, expected: tuple[str, str]
) -> None:
    folder = tmp_path / "Mail"
    for name in ("cur", "new"):
        (folder / name).mkdir(parents=True)
    (folder / "new/1709632900.M2P7.host").write_bytes(mail(1, date))
    assert dates(open_at(folder), tmp_path) == [expected]
    assert dates(open_at(folder), tmp_path) == [expected], "as remembered"


def test_message_filed_by_the_time_of_its_file_is_named(eml: Path, tmp_path: Path) -> None:
    (eml / "undated.eml").write_bytes(mail(7, ""))
    os.utime(eml / "undated.eml", (1709632900, 1709632900))
    source = open_at(eml)
    assert ("2024-03-05T10:01:40", "from_line") in dates(source, tmp_path)
    said = "filed by the time of the file, since the message has no date (1): undated.eml"
    assert source.new_remarks() == [said]
    again = open_at(eml)
    again.versions()
    assert again.new_remarks() == [said]


# --- folders of other programs ------------------------------------------------------------------


def fill(folder: Path, *names: str) -> Path:
    """A folder of files with one message each, numbered from 1; those in `#` places are deleted."""
    for number, name in enumerate(names, 1):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = mail(number)
        path.write_bytes(emlx(raw) if ".emlx" in name else raw)
    return folder


def emlx(raw: bytes, count: str = "", received: str = "") -> bytes:
    """A message as Apple Mail keeps it."""
    notes = f"<key>date-received</key>\n\t<integer>{received}</integer>" if received else ""
    plist = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0">'
        f'\n<plist version="1.0">\n<dict>{notes}<key>flags</key>'
        "<integer>8590195713</integer></dict>\n</plist>\n"
    )
    return f"{count or len(raw)}      \n".encode() + raw + plist.encode()


FOLDERS = {
    "MH": ("1", "2", "10", "11"),
    "MH with folders": ("1", "2", "lists/1", "lists/dev/1"),
    "MH of folders alone": ("inbox/1", "lists/dev/1"),
    "MH of one message": ("1",),
    "MH with numbers like months": ("1", "2", "3", "200401", "200402"),
    "ezmlm": ("0/01", "0/02", "1/00"),
    "Cyrus": ("1.", "2.", "12."),
    "letters": ("a.eml", "b.EML", "2024/c.eml"),
    "letters and numbers": ("1", "a.eml"),
    "Apple Mail 2": ("Messages/1.emlx", "Messages/2.emlx"),
    "Apple Mail 5": ("4F-9B/Data/Messages/1.emlx", "4F-9B/Data/1/2/Messages/12345.emlx"),
    "Apple Mail, partial": ("Messages/1.emlx", "Messages/2.partial.emlx"),
    "Apple Mail, nested": ("Messages/1.emlx", "Sub.mbox/Messages/1.emlx"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_folder_of_single_messages_is_read(kind: str, tmp_path: Path) -> None:
    folder = fill(tmp_path / "X.mbox", *FOLDERS[kind])
    source = open_at(folder)
    [found] = fetch_months(source, tmp_path).values()
    assert sorted(found) == sorted(mail(n) for n in range(1, len(FOLDERS[kind]) + 1))
    assert [line for line in source.new_remarks() if "left out" in line] == []
    if not kind.startswith("MH"):
        return
    assert fetch_months(open_at(folder, "mh"), tmp_path) == {"2024-03": found}
    assert found == [mail(n) for n in range(1, len(found) + 1)]


def test_files_of_mail_programs_are_named(tmp_path: Path) -> None:
    folder = fill(tmp_path / "inbox", "1", "2", ",3", "#4", ".mh_sequences", ".xmhcache", "sub/#1")
    (folder / "5").write_bytes(b"a shopping list\n")
    (folder / "Info.plist").write_bytes(b"<plist/>")
    source = open_at(folder)
    assert sum(map(len, fetch_months(source, tmp_path).values())) == 2
    assert sorted(source.new_remarks()) == [
        "left out, deleted in its mail program (3): #4, ,3, sub/#1",
        "left out, no message (2): 5, Info.plist",
    ]


def test_attachments_that_apple_mail_keeps_apart_are_named(tmp_path: Path) -> None:
    folder = fill(tmp_path / "X.mbox", "Messages/1.partial.emlx", "Messages/1.2.emlxpart")
    (folder / "Attachments/1/2").mkdir(parents=True)
    (folder / "Attachments/1/2/letter.eml").write_bytes(mail(9))
    source = open_at(folder)
    assert fetch_months(source, tmp_path) == {"2024-03": [mail(1)]}
    assert sorted(source.new_remarks()) == [
        "left out, attachments that Apple Mail keeps apart (2): Attachments/1/2/letter.eml, "
        "Messages/1.2.emlxpart",
        "without their attachments, which Apple Mail keeps apart (1): Messages/1.partial.emlx",
    ]


def test_old_apple_mail_keeps_an_mbox_in_its_package(tmp_path: Path) -> None:
    folder = tmp_path / "dev.mbox"
    folder.mkdir()
    line = b"From ann@example.org Tue Mar  5 10:00:00 2024\n"
    (folder / "mbox").write_bytes(line + mail(1) + b"\n" + line + mail(2))
    (folder / "table_of_contents").write_bytes(b"\0" * 40)
    assert fetch_months(open_at(folder), tmp_path) == {"2024-03": [mail(1), mail(2)]}
    assert fetch_months(open_at(folder, "mbox"), tmp_path) == {"2024-03": [mail(1), mail(2)]}


@pytest.mark.parametrize(("data", "raw"), [
    (emlx(mail(1)), mail(1)),
    (emlx(mail(1)).replace(b"\n", b"\r\n", 1), mail(1)),
    (emlx(mail(1), count="7"), mail(1)),
    (emlx(mail(1), count="9999999"), mail(1)),
    (b"1234      \n" + mail(1), mail(1)),
    (b"5\n" + mail(1), mail(1)),
    (mail(1), mail(1)),
    (b"12\nno header\n", b"12\nno header\n"),
    (b"", b""),
])  # fmt: skip
def test_count_and_notes_of_an_emlx_are_no_text(data: bytes, raw: bytes) -> None:
    assert message_files.read_emlx(data)[0] == raw


def test_time_that_apple_mail_noted_dates_a_message(tmp_path: Path) -> None:
    folder = tmp_path / "X.mbox"
    (folder / "Messages").mkdir(parents=True)
    (folder / "Messages/1.emlx").write_bytes(emlx(mail(1, ""), received="1709632900"))
    assert dates(open_at(folder), tmp_path) == [("2024-03-05T10:01:40", "from_line")]


# --- folders that yield nothing ------------------------------------------------------------------


@pytest.mark.parametrize(("names", "kind", "said"), [
    (("dev.mbox", "old.mbox"), "", r"no monthly archive.* found: dev\.mbox, old\.mbox\. "),
    (("notes.txt",), "", r"no monthly archive.* found: notes\.txt"),
    (("inbox/cur/1709632900.M2P7.host:2,S",), "", r"no monthly archive.* found: inbox\. "),
    (("notes.txt",), "eml", r"no readable message: left out, no message \(1\): notes"),
    (("7",), "mh", r"no readable message: left out, no message \(1\): 7"),
    ((".Sent/cur/1709632900.M2P7.host:2,S", "cur/.x", "new/.x"), "",
     r"no readable message: left out, a folder of its own; .* \(1\): .Sent with 1"),
])  # fmt: skip
def test_folder_without_a_month_is_an_error_with_a_name(
    tmp_path: Path, names: tuple[str, ...], kind: str, said: str
) -> None:
    folder = tmp_path / "mail"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"nothing\n")
    with pytest.raises(SourceError, match=f"list dev: .*{said}"):
        open_at(folder, kind).versions()


def test_empty_folder_has_no_month(tmp_path: Path) -> None:
    (tmp_path / "mail").mkdir()
    assert open_at(tmp_path / "mail").versions() == {}


def test_subfolders_of_a_maildir_are_named(maildir: Path) -> None:
    source = open_at(maildir)
    source.versions()
    assert source.new_remarks() == [
        "left out, a folder of its own; name it as a source (1): .Sent with 1 files"
    ]
    assert [month.month for month in open_at(maildir / ".Sent").versions()] == ["2024-03"]


def test_other_files_of_a_folder_of_archives_are_named(tmp_path: Path) -> None:
    (tmp_path / "mail/2023").mkdir(parents=True)
    for name in ("dev-2024-03.mbox", "README", ".hidden"):
        (tmp_path / "mail" / name).write_bytes(b"")
    os.mkfifo(tmp_path / "mail/dev-2024-04.mbox")
    source = open_at(tmp_path / "mail")
    assert [month.month for month in source.versions()] == ["2024-03"]
    assert sorted(source.new_remarks()) == [
        "left out, no month in the name (1): README",
        "left out, not a file (2): 2023, dev-2024-04.mbox",
    ]
