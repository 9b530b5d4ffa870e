"""Maildir folders and folders of .eml files."""

import logging
import os
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

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


def test_without_any_date_the_time_of_delivery_counts(maildir: Path, tmp_path: Path) -> None:
    (maildir / "new/1711965700.M6P7.host").write_bytes(mail(6, ""))
    assert mail(6, "") in fetch_months(open_at(maildir), tmp_path)["2024-04"]


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


def test_other_files_and_links_are_named_and_not_read(
    eml: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.eml").write_bytes(mail(9))
    (eml / "secret.eml").symlink_to(outside / "secret.eml")
    (eml / "more").symlink_to(outside)
    (eml / "notes.txt").write_bytes(mail(9))
    (eml / ".hidden.eml").write_bytes(mail(9))
    with caplog.at_level(logging.WARNING):
        months = fetch_months(open_at(eml, "eml"), tmp_path)
    assert not any(b"<9@" in raw for found in months.values() for raw in found)
    assert "3 files are no .eml and not read: more, notes.txt, secret.eml" in caplog.text


def test_links_in_a_maildir_are_not_read(maildir: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(mail(9))
    (maildir / "cur/1709632801.M9P7.host:2,").symlink_to(tmp_path / "secret")
    assert len(fetch_months(open_at(maildir), tmp_path)["2024-03"]) == 2


def test_empty_file_is_left_out_with_a_warning(
    eml: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (eml / "nothing.eml").write_bytes(b"\n")
    with caplog.at_level(logging.WARNING):
        assert sum(map(len, fetch_months(open_at(eml), tmp_path).values())) == 3
    assert "nothing.eml is empty: it is left out" in caplog.text


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
