"""Work of other processes at an index of words. Each imports this module, so it imports little."""

from __future__ import annotations

from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from mail_assets.words import lance
from mail_assets.words.index import Term, WordIndex, WordQuery
from mail_assets.words.open import open_words
from mail_assets_tests.vectors.processes import run_together
from mail_assets_tests.words.samples import document


def put_month_and_shared(url: str, writer: int, barrier: Barrier) -> None:
    """Put 2 steps of 20 documents of the writer's own, and the same 20 as every other writer."""
    words = open_words(url)
    for step in range(2):
        barrier.wait()
        own = 1_000 * (writer + 1) + 20 * step
        words.put(document(number, ["own"]) for number in range(own, own + 20))
        words.put(document(number, ["shared"]) for number in range(20 * step, 20 * step + 20))


def check_parallel_writers(words: WordIndex, url: str, writers: int) -> None:
    """Let several processes write at once: no document is lost or doubled."""
    run_together(put_month_and_shared, [(url, writer) for writer in range(writers)])
    shared = sorted(document(number, []).key for number in range(40))
    own = sorted(
        document(1_000 * (writer + 1) + number, []).key
        for writer in range(writers)
        for number in range(40)
    )
    assert sorted(words.keys()) == sorted(shared + own)
    words.maintain()
    assert having(words, "shared") == shared
    assert having(words, "own") == own


def having(words: WordIndex, lexeme: str) -> list[str]:
    """Return the keys of the documents that a search for a lexeme finds, sorted."""
    return sorted(match.key for match in words.search(WordQuery((Term(lexeme),)), 100_000))


def put_for_ever(url: str, told: Connection) -> None:
    """Put documents until killed; tell after each step."""
    words, number = open_words(url), 0
    while True:
        words.put(document(n, ["written", f"w{n}"]) for n in range(number, number + 50))
        number += 50
        told.send(number)


def maintain_for_ever(url: str, told: Connection) -> None:
    """Put a little and maintain until killed; tell after each step."""
    words, number = open_words(url), 100_000
    while True:
        words.put([document(number, ["maintained"])])
        told.send(number)
        words.maintain()
        number += 1


def catch_up_for_ever(url: str, told: Connection) -> None:
    """Put a little and index it until killed, as while an index is filled; tell after each step."""
    lance.LIMITS = lance.LIMITS._replace(least=1, share=0.0)
    words, number = open_words(url), 100_000
    while True:
        words.put([document(number, ["maintained"])])
        told.send(number)
        words.catch_up()
        number += 1
