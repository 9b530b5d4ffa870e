"""One mbox file that holds many months."""

import bz2
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from mail_assets.sources import message_files
from mail_assets.sources.source import ArchiveSource, SourceError, Unchanged
from mail_assets_tests.mail.corpora import reported
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    MARCH_DATE,
    fetch_all,
    fetch_months,
    mail,
    open_list,
)

#: As Google Takeout writes it: CRLF, its own fields first.
TAKEOUT = b"".join(
    f"From {number}@xxx {date} +0000 2024\r\nX-GM-THRID: {number}\r\n".encode()
    + mail(number, own).replace(b"\n", b"\r\n")
    + b"\r\n"
    for number, date, own in (
        (1790000000000000001, "Tue Mar 05 10:00:00", "Tue, 05 Mar 2024 10:00:00 +0000"),
        (1790000000000000002, "Mon Apr 01 10:00:00", APRIL_DATE),
        (1790000000000000003, "Wed Mar 06 10:00:00", ""),
    )
)


def thunderbird(number: int, date: str, status: str = "0001") -> bytes:
    fields = f"From - Sat Jun 01 09:00:00 2024\nX-Mozilla-Status: {status}\n"
    return fields.encode() + b"X-Mozilla-Status2: 00000000\n" + mail(number, date) + b"\n"


def open_at(path: Path, kind: str = "") -> ArchiveSource:
    return open_list(path, path.parent / "cache", kind)


@pytest.mark.parametrize(("name", "compress"), [
    ("All mail Including Spam and Trash.mbox", bytes),
    ("takeout.mbox.gz", gzip.compress),
    ("takeout.mbox.bz2", bz2.compress),
    ("takeout.mbox.zst", zstandard.ZstdCompressor().compress),
])  # fmt: skip
def test_takeout_is_split_unchanged(tmp_path: Path, name: str, compress: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(compress(TAKEOUT))
    months = fetch_all(open_at(path), tmp_path)
    first, second, third = (b"From " + part for part in TAKEOUT.split(b"From 179")[1:])
    assert {month: data.count(b"X-GM-THRID") for month, data in months.items()} == {
        "2024-03": 2,
        "2024-04": 1,
    }
    for part in (first, third):
        assert part[5:].rstrip() in months["2024-03"]
    assert second[5:].rstrip() in months["2024-04"]


def test_message_without_date_has_the_month_of_its_from_line(tmp_path: Path) -> None:
    path = tmp_path / "takeout.mbox"
    path.write_bytes(TAKEOUT)
    assert b"<1790000000000000003@" in fetch_all(open_at(path), tmp_path)["2024-03"]


def test_mail_deleted_in_thunderbird_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    status = "X-Mozilla-Status: 0009\n"  # a sender's own field says nothing
    forged = b"From - Sat Jun 01 09:00:00 2024\n" + mail(3, more=status) + b"\n"
    path.write_bytes(
        thunderbird(1, "Tue, 05 Mar 2024 10:00:00 +0000")
        + thunderbird(2, "Tue, 05 Mar 2024 10:00:00 +0000", "0009")
        + forged
    )
    [found] = fetch_months(open_at(path), tmp_path).values()
    assert [b"<1@" in found[0], b"<3@" in found[1]] == [True, True]
    assert len(found) == 2


def test_file_is_read_once_per_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dev.mbox.gz"
    path.write_bytes(gzip.compress(TAKEOUT))
    scans: list[Path] = []
    scan = message_files._scan

    def count(path: Path, name: str) -> Iterator[tuple[str, str]]:
        scans.append(path)
        return scan(path, name)

    monkeypatch.setattr(message_files, "_scan", count)
    versions = open_at(path).versions()
    source = open_at(path)
    assert source.fetch(MARCH_2024, tmp_path / "x", versions[MARCH_2024]) == Unchanged(
        versions[MARCH_2024], path.as_uri()
    )
    assert len(scans) == 1
    more = thunderbird(7, APRIL_DATE)
    path.write_bytes(gzip.compress(TAKEOUT + more))
    os.utime(path, ns=(7, 7))
    after = open_at(path).versions()
    assert len(scans) == 2
    assert after[MARCH_2024] == versions[MARCH_2024]
    assert after[APRIL_2024] != versions[APRIL_2024]


def test_file_changed_between_listing_and_fetch_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dev.mbox"
    path.write_bytes(TAKEOUT)
    source = open_at(path)
    source.versions()
    path.write_bytes(TAKEOUT.replace(b"Hello", b"HELLO"))
    with pytest.raises(SourceError, match=r"list dev, month 2024-03: .*changed meanwhile") as found:
        source.fetch(MARCH_2024, tmp_path / "x")
    assert found.value.retryable


def test_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "dev.mbox.gz"
    path.write_bytes(gzip.compress(TAKEOUT)[:-5])
    damage = r"list dev: [^:]*/dev\.mbox\.gz: gzip data is damaged or cut off .*; replace the file"
    with pytest.raises(SourceError, match=f"^{damage}$") as found:
        open_at(path).versions()
    assert not found.value.retryable


def test_damaged_file_that_changes_meanwhile_is_retryable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dev.mbox.gz"
    path.write_bytes(gzip.compress(TAKEOUT)[:-5])

    def unpack_while_it_grows(file: message_files.MboxFile) -> None:
        path.write_bytes(gzip.compress(TAKEOUT)[:-1])
        unpack(file)

    unpack = message_files.MboxFile._unpack
    monkeypatch.setattr(message_files.MboxFile, "_unpack", unpack_while_it_grows)
    with pytest.raises(SourceError, match="changed while it was read") as found:
        open_at(path).versions()
    assert found.value.retryable


@pytest.mark.parametrize("name", ["dev.mbox", "dev.mbox.gz"])
def test_file_that_is_no_mbox_is_named_by_its_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    page = b"<html>"
    path.write_bytes(gzip.compress(page) if name.endswith(".gz") else page)
    with pytest.raises(SourceError, match=f"^list dev: {path}: it is not an mbox") as found:
        open_at(path).versions()
    assert not found.value.retryable


def test_empty_file_has_no_month(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert open_at(tmp_path / "empty").versions() == {}


def test_folder_that_two_versions_of_thunderbird_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    old = [thunderbird(n, MARCH_DATE, status) for n, status in ((1, "0001"), (2, "0009"))]
    new = [
        b"From \n" + thunderbird(n, date).partition(b"\n")[2]
        for n, date in ((3, MARCH_DATE), (4, APRIL_DATE), (5, MARCH_DATE))
    ]
    path.write_bytes(b"".join([*old, *new]))
    source = open_at(path)
    months = fetch_months(source, tmp_path)
    ids = {
        month: [raw.partition(b"ID: <")[2][:1] for raw in raws] for month, raws in months.items()
    }
    assert ids == {"2024-03": [b"1", b"3", b"5"], "2024-04": [b"4"]}
    assert source.new_remarks() == [
        f"left out, deleted in Thunderbird, of dev (1): at byte {len(old[0])}"
    ]
    again = open_at(path)
    again.versions()
    assert len(again.new_remarks()) == 1


@pytest.mark.parametrize(
    "line", [b"From \n", b"From jo@example.org\n", b"From jo@example.org 2024-03-05 10:00:00\n"]
)
def test_single_mail_of_another_program_stays_in_its_month(tmp_path: Path, line: bytes) -> None:
    """In its month it has no neighbours that vouch for it, as it has in the whole file."""
    path = tmp_path / "dev"
    usual = b"From ann@example.org Tue Mar  5 10:00:00 2024\n"
    others = [line + mail(n, date) + b"\n" for n, date in ((2, MARCH_DATE), (3, APRIL_DATE))]
    path.write_bytes(usual + mail(1) + b"\n" + b"".join(others) + usual + mail(4) + b"\n")
    months = fetch_months(open_at(path), tmp_path)
    assert {month: len(raws) for month, raws in months.items()} == {"2024-03": 3, "2024-04": 1}


def test_mail_of_an_account_deleted_in_thunderbird_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    account = b"X-Account-Key: account1\nX-UIDL: UID1-2\n"
    path.write_bytes(
        b"".join(
            b"From \n" + account + thunderbird(n, MARCH_DATE, status).partition(b"\n")[2]
            for n, status in ((1, "0001"), (2, "0009"), (3, "0000"))
        )
    )
    [found] = fetch_months(open_at(path), tmp_path).values()
    assert [b"<1@" in found[0], b"<3@" in found[1], len(found)] == [True, True, 2]


def test_file_of_a_classic_mac_is_read(tmp_path: Path) -> None:
    path = tmp_path / "In"
    line = b"From ???@??? Tue Mar  5 10:00:00 2024\n"
    path.write_bytes(b"".join(line + mail(n) + b"\n" for n in (1, 2)).replace(b"\n", b"\r"))
    assert fetch_months(open_at(path), tmp_path) == {"2024-03": [mail(1), mail(2)]}


@pytest.mark.parametrize(
    ("name", "count"),
    [("R01-thunderbird-upgraded-folder", 5), ("R02-thunderbird-upgraded-deleted", 4)],
)
def test_reported_folder_of_thunderbird_is_read(tmp_path: Path, name: str, count: int) -> None:
    path = tmp_path / "dev"
    path.write_bytes(reported(f"{name}.mbox").read_bytes())
    assert sum(map(len, fetch_months(open_at(path), tmp_path).values())) == count
