"""Archives in a folder."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from mail_assets.sources.folder import FolderSource
from mail_assets.sources.open import open_source
from mail_assets.sources.source import Fetched, HttpOptions, SourceError, Unchanged
from mail_assets_tests.sources.samples import FEBRUARY, JANUARY

MBOX = b"From ann@example.org Mon Jan 05 15:18:12 2026\nFrom: ann@example.org\n\nHello\n\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "a list"
    folder.mkdir()
    return folder


@pytest.fixture
def source(folder: Path) -> FolderSource:
    return FolderSource("hackers", str(folder))


def test_files_are_listed_by_month_and_no_others(folder: Path, source: FolderSource) -> None:
    for name in ("x.202001.gz", "2020-February.txt", "README", ".x.202003", "x.202004.part"):
        (folder / name).write_bytes(MBOX)
    (folder / "202005").mkdir()
    assert list(source.versions()) == [JANUARY, FEBRUARY]


def test_archive_is_copied_byte_for_byte(
    folder: Path, source: FolderSource, tmp_path: Path
) -> None:
    data = gzip.compress(MBOX)
    (folder / "x.202001.gz").write_bytes(data)
    target = tmp_path / "target"
    assert source.fetch(JANUARY, target) == Fetched(
        target,
        source.versions()[JANUARY],
        len(data),
        hashlib.sha256(data).hexdigest(),
        (folder / "x.202001.gz").as_uri(),
    )
    assert target.read_bytes() == data


def test_file_that_vanishes_during_listing_is_left_out(
    folder: Path, source: FolderSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x.202001", "x.202002"):
        (folder / name).write_bytes(MBOX)
    listed = FolderSource._months

    def list_and_lose(one: FolderSource) -> dict[str, list[str]]:
        found = listed(one)
        (folder / "x.202002").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(FolderSource, "_months", list_and_lose)
    assert list(source.versions()) == [JANUARY]
    monkeypatch.setattr(FolderSource, "_months", lambda _: {"2020-02": ["x.202002"]})
    with pytest.raises(SourceError, match=r"list hackers: .*x\.202002 was moved") as found:
        source.versions()
    assert found.value.retryable


def test_known_version_is_not_copied_and_a_touched_file_is(
    folder: Path, source: FolderSource, tmp_path: Path
) -> None:
    path = folder / "x.202001"
    path.write_bytes(MBOX)
    known = source.versions()[JANUARY]
    target = tmp_path / "target"
    assert source.fetch(JANUARY, target, known) == Unchanged(known, path.as_uri())
    assert not target.exists()
    os.utime(path, ns=(1, 1))
    assert isinstance(source.fetch(JANUARY, target, known), Fetched)


def test_month_without_a_file_is_none(source: FolderSource, tmp_path: Path) -> None:
    assert source.fetch(JANUARY, tmp_path / "target") is None


def test_of_many_files_of_one_month_a_few_are_named(
    folder: Path, source: FolderSource, tmp_path: Path
) -> None:
    for number in range(5):
        (folder / f"x{number}.202001").write_bytes(MBOX)
    with pytest.raises(SourceError, match=r"several archives .*: x0\.202001 and .* and 2 more"):
        source.fetch(JANUARY, tmp_path / "target")


def test_two_files_of_month_are_refused(folder: Path, source: FolderSource, tmp_path: Path) -> None:
    for name in ("x.202001", "x.202001.gz", "x.202002"):
        (folder / name).write_bytes(MBOX)
    assert list(source.versions()) == [JANUARY, FEBRUARY]
    assert isinstance(source.fetch(FEBRUARY, tmp_path / "target"), Fetched)
    with pytest.raises(SourceError, match=r"month 2020-01: .*: x\.202001 and x\.202001\.gz;"):
        source.fetch(JANUARY, tmp_path / "target")


def test_truncated_archive_error_names_list_month_and_file(
    folder: Path, source: FolderSource, tmp_path: Path
) -> None:
    (folder / "x.202001.gz").write_bytes(gzip.compress(MBOX)[:-5])
    where = r"list hackers, month 2020-01: [^:]*/x\.202001\.gz is refused: gzip data [^:]*"
    with pytest.raises(SourceError, match=f"^{where}; replace the file$") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert not found.value.retryable
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.202001", MBOX), ("x.202001.gz", gzip.compress(MBOX)[:-5])],
    ids=["plain", "cut"],
)
def test_file_that_changes_while_it_is_read_is_refused(
    folder: Path,
    source: FolderSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    data: bytes,
) -> None:
    path = folder / name
    path.write_bytes(data)
    real = os.fstat

    def grow_then_stat(handle: int) -> os.stat_result:
        status = real(handle)
        with path.open("ab") as file:
            file.write(MBOX)
        return status

    monkeypatch.setattr("mail_assets.sources.folder.os.fstat", grow_then_stat)
    with pytest.raises(SourceError, match="changed while it was read") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable
    assert not (tmp_path / "target").exists()


def test_missing_folder_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    source = FolderSource("hackers", str(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match=r"list hackers: the folder .*nowhere cannot be read"):
        source.versions()


def test_path_and_its_file_url_are_the_same_source(folder: Path) -> None:
    (folder / "x.202001").write_bytes(MBOX)
    listings = [
        open_source("hackers", url, start="2020-01", options=HttpOptions(), cache=folder).versions()
        for url in (str(folder), folder.as_uri(), folder.as_uri().replace("://", "://localhost"))
    ]
    assert listings[0]
    assert listings[0] == listings[1] == listings[2]
