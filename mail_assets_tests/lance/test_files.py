"""Damaged files of a table are named, and LanceDB's panics are errors of the index."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mail_assets.lance import table as lance_table
from mail_assets.lance.connection import lance_errors
from mail_assets.lance.table import find_altered, find_indexes, find_unfinished, seal_indexes
from mail_assets.words.index import NAME, Term, WordQuery, WordsError
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.broken_files import overwrite, truncate
from mail_assets_tests.words.samples import documents

REMEDY = rf"mail-assets index rebuild {NAME}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index of some documents; it is only read."""
    folder = tmp_path_factory.mktemp("words")
    index = LanceWordIndex(str(folder))
    index.ensure()
    index.insert(documents(300))
    index.maintain()
    index.probe()
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "words"))


def table_of(folder: Path) -> Path:
    return folder / f"{NAME}.lance"


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    start, end = len(content) // 4, len(content) // 2
    content[start:end] = b"\xff" * (end - start)
    path.write_bytes(content)


DAMAGES = [truncate, empty, overwrite, overwrite_middle, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
def test_probe_names_damaged_file_of_index(folder: Path, damage: Callable[[Path], None]) -> None:
    indexes = find_indexes(table_of(folder))
    for path in [path for index in indexes for path in sorted(index.glob("*.lance"))]:
        content = path.read_bytes()
        damage(path)
        with pytest.raises(WordsError, match=REMEDY):
            LanceWordIndex(str(folder)).probe()
        path.write_bytes(content)
    LanceWordIndex(str(folder)).probe()


@pytest.mark.parametrize("damage", [truncate, empty, overwrite])
@pytest.mark.parametrize("pattern", ["data/*.lance", "_indices/*/*.lance", "_versions/*.manifest"])
def test_search_names_a_damaged_file_without_reading_it(
    folder: Path, damage: Callable[[Path], None], pattern: str
) -> None:
    table = table_of(folder)
    of_indexes = [path for index in find_indexes(table) for path in index.glob("*.lance")]
    found = of_indexes if pattern.startswith("_indices") else table.glob(pattern)
    path = sorted(found)[0]
    damage(path)
    with pytest.raises(WordsError, match=rf"{path.name} is damaged.*{REMEDY}"):
        LanceWordIndex(str(folder)).search(WordQuery((Term("w1"),)), 5)


def test_file_that_a_killed_writer_left_is_no_damage(folder: Path) -> None:
    (table_of(folder) / "data" / "left.lance").write_bytes(b"half")
    left = table_of(folder) / "_indices" / "11111111-2222-3333-4444-555555555555"
    left.mkdir()
    (left / "part.lance").write_bytes(b"half")
    LanceWordIndex(str(folder)).probe()


def test_seal_is_kept_for_each_index_of_the_newest_version(folder: Path) -> None:
    table = table_of(folder)
    assert not find_unfinished(table)
    assert not find_altered(table)
    seals = [index / "digests.json" for index in find_indexes(table)]
    assert len(seals) >= 8, "one at least for each indexed column"
    seals[0].write_text("{")
    assert find_altered(table) == [seals[0]]
    seals[0].unlink()
    seal_indexes(table)
    assert not find_altered(table)


def test_drop_and_ensure_replace_a_table_that_cannot_be_opened(folder: Path) -> None:
    for path in table_of(folder).glob("_versions/*.manifest"):
        overwrite(path)
    index = LanceWordIndex(str(folder))
    index.drop()
    index.ensure()
    assert index.count() == 0


def test_search_ends_at_its_deadline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = LanceWordIndex(str(folder))

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(lance_table, "LOOK", 0.01)
    monkeypatch.setattr(index._handle, "_read", hang)
    with monkeypatch.context() as patch:
        patch.setattr(lance_table, "DEADLINE", 0.1)
        with pytest.raises(WordsError, match=rf"no answer within 0 s.*{REMEDY}"):
            index.search(WordQuery((Term("w1"),)), 5)
    sizes = iter([0, 1 << 30, 5 << 30])
    monkeypatch.setattr(lance_table, "read_memory", lambda: next(sizes))
    with pytest.raises(WordsError, match=rf"more than 4 GB of memory.*{REMEDY}"):
        index.search(WordQuery((Term("w1"),)), 5)


def test_panic_of_lancedb_is_an_error_of_the_index() -> None:
    class RustPanic(BaseException):
        """As pyo3 raises it: no Exception."""

    with pytest.raises(WordsError, match=REMEDY), lance_errors(f"{NAME} in lance:x", WordsError):
        raise RustPanic("rust future panicked")
    with pytest.raises(KeyboardInterrupt), lance_errors("x in y", WordsError):
        raise KeyboardInterrupt
