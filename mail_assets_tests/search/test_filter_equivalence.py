"""Any combination of filters finds what a scan of everything finds, on two vector backends."""

import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pytest

from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.search import filters
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_index
from mail_assets.search.response import Hit
from mail_assets.search.searcher import Searcher
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import WordIndex
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.search.fixed_vectors import FixedVectors, asking

COMBINATIONS = 200
QUERY = "harbor lease queue upgrade"
LEXEMES = "harbor | leas | queue | queu | upgrad"


class Row(NamedTuple):
    """All that a filter can look at, and the vectors of a row's chunks."""

    message_id: str
    name: str
    month: str
    sent_at: dt.datetime
    sender: tuple[str, str]
    receivers: list[str]
    subject: str
    thread_id: str
    is_patch: bool
    is_reply: bool
    attachments: list[str]
    has_words: bool
    vectors: np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def encoder(corpus: Corpus) -> LocalEncoder:
    settings = corpus.settings
    return open_local_encoder(settings.encoder, settings.precision, settings.model_cache)


@pytest.fixture(scope="module")
def lance(corpus: Corpus) -> VectorIndex:
    s = corpus.settings
    return open_index(s.database, s.vectors, s.encoder, s.precision)


@pytest.fixture(scope="module")
def pgvector(corpus: Corpus, lance: VectorIndex) -> Iterator[VectorIndex]:
    if not vector_cpu_ok():
        pytest.skip("the embedded server's pgvector does not run on this processor")
    index = open_bucket("pgvector:", dsn=corpus.settings.pg_dsn).index(lance.spec)
    index.ensure()
    index.put(lance.get([*lance.keys()], data=True).values())
    yield index
    index.drop()


@pytest.fixture(scope="module")
def rows(connection: psycopg.Connection, lance: VectorIndex) -> list[Row]:
    stored = lance.get([*lance.keys()], data=True)
    chunks: dict[tuple[Any, ...], list[Any]] = {}
    for key, *row in connection.execute("select key, message_id, list, month, variant from chunks"):
        chunks.setdefault(tuple(row), []).append(stored[key].values)
    found = connection.execute(
        "select m.message_id, m.list, m.month, m.sent_at, m.from_name, m.from_email,"
        " m.recipients || m.cc, m.subject, t.thread_id, m.segments, m.attachments,"
        " m.in_reply_to || m.refs, m.search @@ %s::tsquery, m.variant"
        " from messages m join threads t using (message_id)",
        [LEXEMES],
    ).fetchall()
    return [
        Row(
            *(r[0], r[1], r[2], r[3], (r[4], r[5]), r[6], r[7], r[8]),
            is_patch=any(s[2] == "patch" for s in r[9]) or any(a["is_patch"] for a in r[10]),
            is_reply=bool(r[11]),
            attachments=[a["name"] for a in r[10]],
            has_words=r[12],
            vectors=np.stack(chunks.get((r[0], r[1], r[2], r[13]), [np.zeros(384)])),
        )
        for r in found
    ]


def passes(row: Row, senders: set[str], request: Request) -> bool:
    """What the filters of a request mean, said again without SQL."""
    day = row.sent_at.astimezone(dt.UTC).date()
    return (
        (not request.lists or row.name in request.lists)
        and (not request.months or row.month in request.months)
        and (request.after is None or day >= request.after)
        and (request.before is None or day < request.before)
        and (not request.sender or row.sender[1].lower() in senders)
        and (not request.receiver or request.receiver.lower() in "\n".join(row.receivers).lower())
        and (not request.subject or request.subject.lower() in row.subject.lower())
        and (not request.thread or row.thread_id == request.thread)
        and ("patch" not in request.kinds or row.is_patch)
        and ("reply" not in request.kinds or row.is_reply)
        and ("first" not in request.kinds or not row.is_reply)
        and (not request.has_attachment or bool(row.attachments))
        and (
            not request.attachment
            or any(request.attachment.lower() in name.lower() for name in row.attachments)
        )
    )


def senders_of(rows: list[Row], part: str) -> set[str]:
    """Addresses that a sender stands for: itself, else all of those that hold its words."""
    low = part.lower()
    all_ = {row.sender[1].lower() for row in rows}
    return {low} if low in all_ else {
        row.sender[1].lower()
        for row in rows
        if all(word in f"{row.sender[0]} {row.sender[1]}".lower() for word in low.split())
    }  # fmt: skip


def combination(rows: list[Row], chance: random.Random, mode: str) -> Request:
    """Some filters whose values are those of some row, so that most find something."""
    row = chance.choice(rows)
    day = row.sent_at.astimezone(dt.UTC).date()
    choices: dict[str, Any] = {
        "lists": tuple({row.name, chance.choice(rows).name}),
        "months": (row.month,),
        "after": day - dt.timedelta(chance.randrange(9)),
        "before": day + dt.timedelta(chance.randrange(1, 9)),
        "sender": chance.choice([row.sender[1].upper(), row.sender[0][:5], "example"]),
        "receiver": chance.choice([*row.receivers, "lists"])[2:9],
        "subject": row.subject[:6].strip(),
        "thread": row.thread_id,
        "kinds": tuple(chance.sample(["patch", "reply", "first"], 1)),
        "has_attachment": True,
        "attachment": (chance.choice(row.attachments) if row.attachments else "patch")[-6:],
    }
    names = chance.sample([*choices], chance.choice([1, 1, 2, 2, 3]))
    given = {name: choices[name] for name in names}
    return Request(QUERY, mode=mode, limit=100, group="message", **given)


def pages_of(searcher: Searcher, asked: Request) -> list[Hit]:
    """Return the hits of all pages, up to the first that is short."""
    hits: list[Hit] = []
    while True:
        response = searcher.search(replace(asked, offset=len(hits)))
        hits += response.hits
        if response.short:
            return hits


def key(hit: Hit) -> tuple[str, str, str]:
    return hit.message_id, hit.month, hit.subject


def found(hits: list[Hit]) -> set[str]:
    return {i for hit in hits for i in (hit.message_id, *hit.copies)}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["lance", "pgvector"])
@pytest.mark.parametrize("values", [3, 50])
def test_any_filters_find_what_a_scan_finds(
    request: pytest.FixtureRequest,
    connection: psycopg.Connection,
    corpus: Corpus,
    encoder: LocalEncoder,
    rows: list[Row],
    words: WordIndex,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    values: int,
) -> None:
    index: VectorIndex = request.getfixturevalue(backend)
    # few values put to the index, so that most filters are checked behind it
    monkeypatch.setattr(filters, "MAX_WORD_CONSTRAINTS", values)
    vector = encoder.encode_query(QUERY)

    def nearest(_: str, top_k: int, where: Filter | None) -> list[Match]:
        return index.query(vector, top_k, where)

    vectors = FixedVectors(nearest, 10_000, max_constraints=values)
    searcher = Searcher(connection, asking(words), vectors, corpus.settings.languages)
    # a filter takes messages away and leaves the scores of the others by words as they are
    whole = {
        key(hit): hit.score
        for name in corpus.settings.languages
        for month in ("2024-03", "2024-04")
        for hit in pages_of(
            searcher,
            Request(QUERY, "fulltext", 100, (name,), months=(month,), group="message"),
        )
    }
    chance = random.Random(f"{backend} {values}")
    hits = 0
    for _ in range(COMBINATIONS // 4):  # in two modes, with two bounds
        for mode, scan in (("semantic", by_meaning(vector)), ("fulltext", by_words)):
            asked = combination(rows, chance, mode)
            senders = senders_of(rows, asked.sender) if asked.sender else set()
            passing = [row for row in rows if passes(row, senders, asked)]
            expected = scan(passing)
            shown = pages_of(searcher, asked)
            assert found(shown) == expected.keys(), asked
            scores = [hit.score for hit in shown]
            assert scores == sorted(scores, reverse=True), asked
            for hit in shown:
                score = expected[hit.message_id] if mode == "semantic" else whole.get(key(hit))
                assert hit.score == pytest.approx(score, abs=2e-3), asked  # halfvec
            hits += len(expected)
    assert hits > COMBINATIONS // 2


def by_words(rows: list[Row]) -> dict[str, float]:
    return {row.message_id: 0.0 for row in rows if row.has_words}


def by_meaning(vector: Any) -> Callable[[list[Row]], dict[str, float]]:
    def scan(rows: list[Row]) -> dict[str, float]:
        best: dict[str, float] = {}
        for row in rows:
            if row.vectors.any():
                score = float((row.vectors @ vector).max())
                best[row.message_id] = max(best.get(row.message_id, -1.0), score)
        return best

    return scan
