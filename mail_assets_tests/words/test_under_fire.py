"""An index of words under concurrent writers, killed processes, and after forgetting."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from mail_assets.words import lance
from mail_assets.words.index import WordIndex
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.limits import change_limits
from mail_assets_tests.words.processes import (
    catch_up_for_ever,
    check_parallel_writers,
    having,
    maintain_for_ever,
    put_for_ever,
)
from mail_assets_tests.words.samples import document, documents


@pytest.mark.slow
def test_parallel_writers_lose_and_double_nothing(words: WordIndex, words_url: str) -> None:
    check_parallel_writers(words, words_url, writers=4)


@pytest.mark.slow
@pytest.mark.parametrize("work", [put_for_ever, maintain_for_ever, catch_up_for_ever])
def test_run_completes_the_work_of_a_killed_process(
    words: WordIndex, words_url: str, work: Callable[[str, Connection], None]
) -> None:
    words.put(document(200_000 + number, ["before"]) for number in range(100))
    heard, told = FORKS.Pipe(duplex=False)
    process = start_process(work, words_url, told)
    told.close()  # so that a process that ends otherwise ends the waiting
    for _ in range(3):
        heard.recv()
    process.kill()
    process.join()
    written = sorted(words.keys())
    assert len(set(written)) == len(written)
    words.ensure()
    words.maintain()
    assert len(having(words, "before")) == 100
    found = {*having(words, "before"), *having(words, "written"), *having(words, "maintained")}
    assert found == {*written}
    assert words.describe()["unindexed_documents"] == 0


@pytest.mark.slow
def test_writer_goes_on_while_an_index_catches_up(
    words: WordIndex, words_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, lance, least=1, share=0)
    heard, told = FORKS.Pipe(duplex=False)
    process = start_process(put_for_ever, words_url, told)
    told.close()
    for _ in range(3):
        heard.recv()
        words.catch_up()
    process.kill()
    process.join()
    words.maintain()
    assert having(words, "written") == sorted(words.keys())
    assert words.count() >= 150


@pytest.mark.parametrize("maintained", [False, True])
def test_forgotten_word_is_in_no_file(words: WordIndex, tmp_path: Path, maintained: bool) -> None:
    secret = "pterodactylography"
    words.put([*documents(50), document(999, ["before", secret, "after"])])
    words.put([document(998, [secret])])
    if maintained:
        words.maintain()
    assert holding(tmp_path, secret)
    words.put([document(998, ["else"])])
    words.delete([document(999, []).key])
    words.maintain(erase=True)
    assert holding(tmp_path, secret) == []
    assert words.count() == 51
    assert having(words, secret) == []
    assert having(words, "else") == [document(998, []).key]


def holding(folder: Path, word: str) -> list[Path]:
    """Return the files that hold a word, or enough of it to tell; a message id is looked for too.

    Lance compresses texts in blocks, but writes the bytes of a word that is new to them.
    """
    parts = [word[start : start + 8].encode() for start in range(len(word) - 8)]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if any(part in file.read_bytes() for part in parts)]


def test_rounds_of_writing_and_upkeep_leave_few_files(words: WordIndex, tmp_path: Path) -> None:
    for number in range(6):
        words.put(document(10 * number + each, ["word"]) for each in range(10))
        words.maintain()
    assert words.describe()["unindexed_documents"] == 0
    assert len(having(words, "word")) == 60
    words.delete([document(0, []).key])
    words.maintain(erase=True)
    assert len([*tmp_path.rglob("data/*.lance")]) == 1
    assert len([*tmp_path.rglob("_indices/*")]) == 8
