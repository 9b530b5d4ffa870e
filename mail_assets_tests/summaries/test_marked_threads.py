"""Extractive summaries of real threads against sentences that were marked by hand."""

import pytest

from mail_assets.summaries.extractive import summarize
from mail_assets_tests.mail.corpora import CORPORA
from mail_assets_tests.summaries.marked_threads import (
    Piece,
    make_piece,
    read_marked_threads,
    read_messages,
    score_f1,
    score_rouge_2,
)
from mail_assets_tests.summaries.threads import write_message

MESSAGES = [write_message(0, "A pump leaks. It is old."), write_message(1, "A pump leaks.")]
LEAKS = make_piece(MESSAGES, 0, (0, 13), "question")
OLD = make_piece(MESSAGES, 0, (14, 24), "question")


def test_set_is_large_and_has_both_halves() -> None:
    threads = read_marked_threads()
    assert len(threads) >= 25
    assert {one.held_back for one in threads} == {True, False}
    assert {one.list_name for one in threads} == {"linux-man-full", "pgsql-todo"}
    assert {mark.part for one in threads for mark in one.marks} == {
        "question",
        "discussion",
        "outcome",
    }


def test_mark_is_found_in_place_and_verbatim_elsewhere() -> None:
    nearly = make_piece(MESSAGES, 0, (2, 13), "question")
    elsewhere = make_piece(MESSAGES, 1, (0, 13), "discussion")
    assert LEAKS.is_same(nearly)
    assert LEAKS.is_same(elsewhere)
    assert not LEAKS.is_same(OLD)


@pytest.mark.parametrize(
    ("chosen", "f1"),
    [([LEAKS, OLD], 1.0), ([LEAKS], 2 / 3), ([], 0.0)],
    ids=["both", "one", "none"],
)
def test_f1_counts_sentences(chosen: list[Piece], f1: float) -> None:
    assert score_f1(chosen, [LEAKS, OLD]) == pytest.approx(f1)


def test_rouge_2_counts_pairs_of_words() -> None:
    assert score_rouge_2(MESSAGES, [LEAKS, OLD], [LEAKS, OLD]) == 1.0
    assert score_rouge_2(MESSAGES, [LEAKS], [LEAKS, OLD]) == pytest.approx(2 * 2 / (2 + 4))
    assert score_rouge_2(MESSAGES, [OLD], [LEAKS]) == 0.0


@pytest.mark.slow
def test_every_marked_sentence_is_found_in_the_archives() -> None:
    archives = CORPORA / "archives"
    if not (archives / "linux-man-full").is_dir():
        pytest.skip(f"the real mail is not here: {archives}")
    scores = []
    for thread in read_marked_threads():
        messages = read_messages(archives, thread)
        for mark in thread.marks:
            assert make_piece(messages, mark.message, (mark.start, mark.end), mark.part) == mark
        places = {message.message_id: i for i, message in enumerate(messages)}
        chosen = [
            make_piece(messages, places[one.message_id], (one.start, one.end), one.part)
            for one in summarize(messages).sentences
        ]
        scores.append(score_f1(chosen, thread.marks))
    # measured: .44; as many sentences taken at random have .20
    assert sum(scores) / len(scores) > 0.35
