"""Archives as fetched: their rows, the names of their files, and lost files."""

from pathlib import Path

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.store.objects import check_key
from mail_assets.store.open import open_store
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    archived_months,
    folder_key,
    known_archives,
    local_archive,
    object_key,
    read_archive,
    write_archive,
)

JANUARY, FEBRUARY, MARCH = (ListMonth("dev", f"2024-0{n}") for n in (1, 2, 3))
SHA = "0123456789abcdef" * 4
ROW = ArchiveRow(
    "https://host/x", "archives/dev/2024-03/a.mbox", SHA, 9, "etag", 2, "c" * 64, "pg", "plain"
)
EMPTY = ArchiveRow("https://host/x", None, "", 0, "", 0, "", "", "")


def test_row_is_read_as_written_last(migrated: psycopg.Connection) -> None:
    assert read_archive(migrated, MARCH) is None
    write_archive(migrated, MARCH, EMPTY)
    assert read_archive(migrated, MARCH) == EMPTY
    write_archive(migrated, MARCH, ROW)
    assert read_archive(migrated, MARCH) == ROW
    assert read_archive(migrated, ListMonth("users", "2024-03")) is None


def test_month_without_archive_is_known(migrated: psycopg.Connection) -> None:
    write_archive(migrated, MARCH, ROW)
    write_archive(migrated, JANUARY, ROW._replace(version="w/1"))
    write_archive(migrated, FEBRUARY, EMPTY)
    write_archive(migrated, ListMonth("users", "2024-04"), ROW)
    assert archived_months(migrated, "dev") == [JANUARY, MARCH]
    known = known_archives(migrated, ["dev"])
    versions = {month: archive.version for month, archive in known.items()}
    assert versions == {JANUARY: "w/1", FEBRUARY: "", MARCH: "etag"}


@pytest.mark.parametrize("month", ["2024-3", "202403", "2024-03-01", ""])
def test_table_takes_a_month_in_one_spelling(migrated: psycopg.Connection, month: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        migrated.execute(
            "insert into mbox_archives (list, month, source) values ('dev', %s, 'folder')", (month,)
        )


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_name_carries_its_digest(suffix: str) -> None:
    key = object_key(MARCH, SHA, suffix)
    assert check_key(key) == f"archives/dev/2024-03/0123456789abcdef.mbox{suffix}"
    assert key.startswith(folder_key(MARCH))
    assert object_key(MARCH, SHA[1:], suffix) != key


def test_archive_is_read_from_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_bytes("archives/a", b"From ")
    with local_archive(store, "archives/a") as path:
        assert path.read_bytes() == b"From "


def test_lost_archive_is_named_with_the_remedy(tmp_path: Path) -> None:
    lost = pytest.raises(FileNotFoundError, match=r"archives/a is missing .* --only mbox_archives")
    with lost, local_archive(open_store(tmp_path), "archives/a"):
        pass


def test_another_missing_file_is_not_taken_for_the_archive(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_bytes("archives/a", b"From ")
    with (
        pytest.raises(FileNotFoundError, match=r"^something else$"),
        local_archive(store, "archives/a"),
    ):
        raise FileNotFoundError("something else")
