"""The semantic leg: messages ranked by the chunk that is nearest to the query.

A static index is filled in minutes and finds the right messages, but ranks them worse. So the model
that its table was derived from reranks its best matches, and the best by words. The model encodes
their chunks when a query finds them. Each text is encoded once: its vector is stored until the
model's own index is live.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.indexes.encoder_probe import Encoder, ProbedEncoder
from mail_assets.indexes.vectors import MAX_ID
from mail_assets.search.live_index import VectorSearch
from mail_assets.search.matches import Candidate
from mail_assets.tables.encoded_texts import (
    CandidateChunk,
    WantedChunks,
    keep_encoded,
    read_candidate_chunks,
)
from mail_assets.text.chunking import build_document
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

logger = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]

#: Chunks that hybrid mode asks for, and that are enough if filters are applied after the index; 100
#: to 400 rank no better (docs/benchmarks.md), and 100 take half as long again.
HYBRID_CHUNKS = 50
#: Chunks that semantic mode asks for; more if they do not fill a page.
SEMANTIC_DEPTH = 100
#: Most chunks that are read if filters are applied after the index and few chunks pass.
MAX_NEAREST = 2_000
#: Chunks of the static index, and messages by words, that the model reranks (docs/encoders.md).
NEAREST_CHUNKS, MESSAGES_BY_WORDS = 50, 50
#: Chunks that are encoded of a message found only by words, whose nearest chunk is unknown.
FIRST_CHUNKS = 2


def search_vectors(
    index: VectorSearch,
    text: str,
    where: Filter | None,
    passing: Iterable[str] | None = None,
    depth: int = HYBRID_CHUNKS,
    *,
    from_mail: bool = False,
    estimate: bool = False,
) -> list[Match]:
    """Return up to `depth` chunks that match a filter of the index, nearest first.

    PostgreSQL checks the other conditions later. `passing` has the ids of the messages that pass,
    if they are known and few; they replace the filter. The vector of a query is cached, that of a
    text `from_mail` is not. With `estimate`, distances may be estimates.
    """
    if passing is not None:
        ids = [*dict.fromkeys(one[:MAX_ID] for one in passing)]
        if not ids:
            return []
        where = {"message_id": {"$in": ids}}
    top_k = min(depth, index.max_matches())
    return index.nearest(text, top_k, where, from_mail=from_mail, estimate=estimate)


def measure_chunks(
    index: VectorSearch, text: str, candidates: list[Candidate], matches: Iterable[Match]
) -> list[Candidate]:
    """Return candidates, nearest first, with exact distances in place of estimates.

    Only confirmed candidates are measured: a few dozen of 2,000.
    """
    keys = {key for one in candidates for key in one.chunks}
    estimated = [one for one in matches if one.row is not None and one.key in keys]
    if not estimated:
        return candidates
    exact = index.measure(text, estimated)
    measured = []
    for one in candidates:
        chunks = {key: round(exact.get(key, known), 6) for key, known in one.chunks.items()}
        nearest = dict(sorted(chunks.items(), key=lambda item: item[1]))
        score = round(1.0 - next(iter(nearest.values())), 6)
        measured.append(one._replace(score=score, chunks=nearest))
    return sorted(measured, key=lambda one: (-one.score, next(iter(one.chunks))))


def rerank(
    connection: psycopg.Connection,
    encoder: Encoder,
    query: Vector,
    semantic: Sequence[Candidate],
    fulltext: Sequence[Candidate] = (),
) -> list[Candidate]:
    """Return the candidates of the semantic leg, ranked by the model.

    First come the messages with the nearest chunks of the static index and the best of `fulltext`,
    each with its similarity to `query`, a vector of the model. The rest of `semantic` follows in
    its order, so that a later page, which asks for more, does not change earlier pages.
    """
    nearest = _select_nearest(semantic)
    tail = semantic[len(nearest) :]
    known = {one.message_id for one in semantic}
    by_words = [one for one in fulltext[:MESSAGES_BY_WORDS] if one.message_id not in known]
    head = [*nearest, *by_words]
    if not head:
        return []
    distances = _measure_distances(connection, encoder, query, head)
    ranked = sorted(
        (_score(one, found) for one, found in zip(head, distances, strict=True) if found),
        key=lambda one: (-one.score, one.message_id),
    )
    lowest = min((one.score for one in ranked), default=1.0)
    return ranked + [one._replace(score=min(one.score, lowest)) for one in tail]


def _select_nearest(semantic: Sequence[Candidate]) -> Sequence[Candidate]:
    distances = sorted(distance for one in semantic for distance in one.chunks.values())
    last = distances[:NEAREST_CHUNKS][-1:]
    return [one for one in semantic if last and min(one.chunks.values()) <= last[0]]


def _measure_distances(
    connection: psycopg.Connection, encoder: Encoder, query: Vector, head: Sequence[Candidate]
) -> list[dict[str, float]]:
    """Return the cosine distances of each candidate's chunks by key, nearest first."""
    chunks = read_candidate_chunks(
        connection,
        encoder.fingerprint,
        [
            WantedChunks(
                one.copy.month,
                one.message_id,
                one.copy.variant,
                first=0 if one.chunks else FIRST_CHUNKS,
            )
            for one in head
        ],
        [key for one in head for key in one.chunks],
    )
    encoded = _encode_missing(connection, encoder, chunks)
    vectors = [encoded[c.text_hash] if c.vector is None else c.vector for c in chunks]
    similarities = np.array(vectors, np.float32).reshape(-1, query.size) @ query
    found: list[dict[str, float]] = [{} for _ in head]
    for chunk, similarity in zip(chunks, similarities.tolist(), strict=True):
        found[chunk.place][chunk.key] = round(1.0 - similarity, 6)
    return [dict(sorted(one.items(), key=lambda item: item[1])) for one in found]


def _encode_missing(
    connection: psycopg.Connection, encoder: Encoder, chunks: Sequence[CandidateChunk]
) -> Mapping[bytes, Vector]:
    """Probe the encoder; encode chunks without a vector, store their vectors and return them."""
    missing = {
        one.text_hash: build_document(one.subject, one.text) for one in chunks if one.vector is None
    }
    if not missing:
        return {}
    probed = ProbedEncoder(encoder, connection, logger.warning)
    vectors = dict(zip(missing, probed.encode_documents([*missing.values()]), strict=True))
    keep_encoded(connection, encoder.fingerprint, vectors)
    return vectors


def _score(candidate: Candidate, distances: dict[str, float]) -> Candidate:
    similarity = round(1.0 - next(iter(distances.values())), 6)
    return candidate._replace(score=similarity, chunks=distances)
