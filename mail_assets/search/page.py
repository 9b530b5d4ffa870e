"""One page of hits: near-duplicates folded, grouped by thread if requested."""

from collections.abc import Iterable
from dataclasses import replace

import psycopg

from mail_assets.search.candidates import Candidate
from mail_assets.search.hits import read_hits
from mail_assets.search.near_duplicates import fold_near_duplicates
from mail_assets.search.request import Group, Request
from mail_assets.search.response import Hit
from mail_assets.search.retrieval import SPARE_CANDIDATES, Retrieval


def read_page(connection: psycopg.Connection, request: Request, found: Retrieval) -> list[Hit]:
    """Return the hits of the page that a request asks for.

    Candidates are read in blocks, until folding leaves enough hits.
    """
    ranked = [
        one
        for one in found.candidates
        if request.min_score is None or one.score >= request.min_score
    ]
    threads = group_by_thread(ranked) if request.group == Group.thread else {}
    if request.group == Group.thread:
        ranked = [best for best, *_ in threads.values()]
    last = request.offset + request.limit
    hits: list[Hit] = []
    start = 0
    while start < len(ranked) and len(hits) < last:
        block = ranked[start : start + last - len(hits) + SPARE_CANDIDATES]
        new = read_hits(connection, block, found.query, found.terms)
        hits = fold_near_duplicates([*hits, *new])
        start += len(block)
    page = hits[request.offset : last]
    return [_add_thread(hit, threads) for hit in page] if threads else page


def group_by_thread(ranked: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Return candidates by thread, threads in the order of their best."""
    threads: dict[str, list[Candidate]] = {}
    for one in ranked:
        threads.setdefault(one.thread_key, []).append(one)
    return threads


def _add_thread(hit: Hit, threads: dict[str, list[Candidate]]) -> Hit:
    """Return a hit with the ids of the further candidates of its thread."""
    _, *others = threads[hit.thread_id or hit.message_id]
    return replace(hit, in_thread=tuple(one.message_id for one in others))
