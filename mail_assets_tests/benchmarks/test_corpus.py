"""A corpus keeps the threads and statistics of its source, with new ids, dates and rare words."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.corpus import transplant
from benchmarks.corpus.source import SourceList, read_source
from benchmarks.corpus.transplant import Renaming, Transplant, read_vocabulary, shift_years
from benchmarks.corpus.write import Corpus, write_corpus
from mail_assets.mail.archive.mbox import RawMessage, split_archive
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.threads import ThreadMessage, ThreadNode, build_trees
from mail_assets.settings.settings import load_settings
from mail_assets_tests.benchmarks.tiny_source import write_source

EPOCHS, MESSAGES = 4, 28


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SourceList]:
    # of seven messages a word is rare in three
    monkeypatch.setattr(transplant, "FREQUENT", 0.5)
    return read_source(write_source(tmp_path / "source"))


@pytest.fixture
def epochs(lists: list[SourceList]) -> list[Transplant]:
    words = read_vocabulary(
        message for one in lists for month in one.months.values() for message in month
    )
    return [Transplant(Renaming(words, epoch), epoch) for epoch in range(EPOCHS)]


def parse(raw: bytes, month: str = "2024-02") -> Message:
    return parse_message(
        RawMessage(0, len(raw), b"", raw, False, False), month=month, dialect="mboxrd"
    )


def written(lists: list[SourceList], epoch: Transplant, years: int = 0) -> dict[str, list[Message]]:
    return {
        one.name: [
            parse(epoch.write(message, years).raw, month)
            for month, messages in one.months.items()
            for message in messages
        ]
        for one in lists
    }


def trees(messages: list[Message]) -> list[ThreadNode]:
    return build_trees(
        ThreadMessage(m.message_id, m.references, m.in_reply_to, m.sent_at.timestamp())
        for m in messages
    )


def test_rendering_of_a_list_is_left_out(lists: list[SourceList]) -> None:
    assert sorted(one.name for one in lists) in (["dock", "tide"], ["dock", "tide-mirror"])


def test_equal_arguments_give_equal_bytes_in_any_process(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    for out, seed in (("one", "1"), ("two", "2")):
        command = [sys.executable, "-m", "benchmarks.corpus", str(source), str(tmp_path / out)]
        done = subprocess.run(
            [*command, "--messages", "25", "--density", "2", "--gzip"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "differs from real mail" in done.stderr  # expected: too few messages
    assert dict(contents(tmp_path / "one")) == dict(contents(tmp_path / "two"))


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def test_pipeline_reads_all_messages_of_a_corpus(lists: list[SourceList], tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    curves = write_corpus(Corpus(lists, density=2), out, MESSAGES)
    settings = load_settings(
        {"MAIL_HOME": str(tmp_path / "home"), "MAIL_LISTS": str(out / "lists.toml")}
    )
    archives = [path for name in settings.lists for path in (out / name).iterdir()]
    read = [message for path in archives for message in split_archive(path, "mboxrd")]
    assert len(read) == sum(curves.months.values()) == MESSAGES
    assert not any(message.suspicious for message in read)


def test_trees_keep_their_shapes_ghosts_included(
    lists: list[SourceList], epochs: list[Transplant]
) -> None:
    shapes = []
    for epoch in epochs:
        nodes = trees([m for messages in written(lists, epoch).values() for m in messages])
        shapes.append([(n.depth, n.position, n.is_ghost, n.parent_id is None) for n in nodes])
    assert any(is_ghost for _, _, is_ghost, _ in shapes[0])
    assert max(position for _, position, _, _ in shapes[0]) == 3
    assert all(shape == shapes[0] for shape in shapes)


def test_ids_are_unique_over_epochs_and_a_cross_post_has_one(
    lists: list[SourceList], epochs: list[Transplant]
) -> None:
    seen: set[str] = set()
    for epoch in epochs:
        by_list = [{m.message_id for m in messages} for messages in written(lists, epoch).values()]
        both = by_list[0] & by_list[1]
        assert len(both) == 1
        assert seen.isdisjoint(by_list[0] | by_list[1])
        seen |= by_list[0] | by_list[1]


def test_quotes_equal_what_they_quote_in_other_words(
    lists: list[SourceList], epochs: list[Transplant]
) -> None:
    quoted_lines = set()
    for epoch in epochs:
        texts = [m.body_text for messages in written(lists, epoch).values() for m in messages]
        lines = {line for text in texts for line in text.splitlines()}
        quoted = [line[2:] for line in lines if line.startswith("> ")]
        assert len(quoted) == 3
        assert lines.issuperset(quoted)
        quoted_lines.add(tuple(sorted(quoted)))
    assert len(quoted_lines) == EPOCHS


@pytest.mark.parametrize("years", [0, -7, 1])
def test_dates_lie_in_their_month(
    lists: list[SourceList], epochs: list[Transplant], years: int
) -> None:
    for one in lists:
        for month, messages in one.months.items():
            shifted = f"{int(month[:4]) + years}{month[4:]}"
            for message in messages:
                sent = parse(epochs[1].write(message, years).raw, shifted)
                assert sent.sent_at.strftime("%Y-%m") == shifted
                assert "date_repaired" not in sent.flags


@pytest.mark.parametrize(("date", "years", "later"), [
    (b"Date: Thu, 29 Feb 2024 12:00:00 +0000", -1, b"Date: Tue, 28 Feb 2023 12:00:00 +0000"),
    (b"Date: Thu, 29 Feb 2024 12:00:00 +0000", -4, b"Date: Sat, 29 Feb 2020 12:00:00 +0000"),
    (b"Date: 6 Dec 96 10:11:12 EST", 20, b"Date: 6 Dec 2016 10:11:12 EST"),
    (b"Date: Mon, 01-Mar-2004 17:29 +2000", 1, b"Date: Tue, 01-Mar-2005 17:29 +2000"),
    (b"Date: Mon Mar  1 02:29:47 2004", 2, b"Date: Mon Mar  1 02:29:47 2006"),
    (b"Date: never", 2, b"Date: never"),
])  # fmt: skip
def test_date_is_shifted_by_whole_years(date: bytes, years: int, later: bytes) -> None:
    assert shift_years(date, years) == later
