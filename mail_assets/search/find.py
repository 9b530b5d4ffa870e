"""From a request to candidates, best first: which legs are asked, and how they become one.

What does not live here: how a leg finds (semantic.py, fulltext.py), the mix (fusion.py), what is
shown of a candidate (page.py).
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

import psycopg

from mail_assets.month import ListMonth
from mail_assets.search.candidate import Candidate, Copy
from mail_assets.search.filters import Limits
from mail_assets.search.fulltext import fulltext
from mail_assets.search.fusion import LIFTED_MESSAGES, by_leg, fuse, joined, lifted_threads, mix_of
from mail_assets.search.hits import MORE, Asked
from mail_assets.search.query import Question, Words, ask, meaning_of, read_words
from mail_assets.search.request import Mode, Request
from mail_assets.search.semantic import ALONE, DEPTH, Nearest, semantic
from mail_assets.vectors.index import Match

#: `<id>`, `id`, `mid:id` or a link that ends in an id.
_PASTED = re.compile(r"(?:mid:|id:|https?://\S+/)?<?([^\s<>/@]+@[^\s<>/@]+)>?/?")


class Found(NamedTuple):
    """Candidates, best first, with what their words were taken as and how they were found."""

    ranked: list[Candidate]
    asked: Asked = Asked((), read_words(""), ())
    explained: Mapping[str, Any] = MappingProxyType({})


class Legs(NamedTuple):
    """What the legs ask: the mail database, the vectors nearest to a text, and how many of them
    the index gives at most.
    """

    connection: psycopg.Connection
    nearest: Nearest
    deepest: Callable[[], int]

    def by_meaning(
        self, text: str, limits: Limits, depth: int = DEPTH, first: list[Match] | None = None
    ) -> list[Candidate]:
        """Return messages by their meaning."""
        return semantic(self.connection, self.nearest, text, limits, depth, self.deepest(), first)

    def listed(self, name: str, limits: Limits, **parameters: object) -> list[Candidate]:
        """Return the messages of a statement as candidates, each in its first copy."""
        rows = self.connection.execute(
            limits.statement(name), {**limits.parameters, **parameters}
        ).fetchall()
        found: dict[str, Candidate] = {}
        for message_id, list_name, month, variant, thread_id in rows:
            copy = Copy(ListMonth(list_name, month), variant)
            found.setdefault(message_id, Candidate(message_id, copy, thread_id, 0.0))
        return [*found.values()]


def find(legs: Legs, request: Request, limits: Limits, languages: Mapping[str, str]) -> Found:
    """Return everything that a request finds, best first."""
    last = request.offset + request.limit
    if not request.query.strip():
        return Found(legs.listed("newest", limits, most=last + MORE))
    if pasted := message_id_in(request.query):
        copies = legs.listed("by_id", limits, message_id=pasted)
        if copies:
            return Found([replace(copies[0], score=1.0)])
    words = read_words(request.query)
    questions = ask(legs.connection, words, languages, limits.lists)
    limits = limits.requiring(questions)
    if request.mode == Mode.hybrid:
        return _by_both(legs, request, limits, questions, words)
    if request.mode == Mode.fulltext:
        ranking = fulltext(legs.connection, questions, words, limits)
        asked = Asked(questions, words, ranking.terms)
        terms = {"terms": [asdict(term) for term in ranking.terms]}
        return Found(by_leg("fulltext", ranking.candidates), asked, terms)
    # Distances do not depend on how many are asked for: a later page may ask for more.
    meant = legs.by_meaning(meaning_of(request.query), limits, max(ALONE, 3 * last))
    return Found(by_leg("semantic", meant), Asked(questions, words, ()))


def similar(legs: Legs, message_id: str, texts: Iterable[str], limits: Limits) -> Found:
    """Return the messages nearest to any of the texts of a message, without that one."""
    best: dict[str, Candidate] = {}
    for text in texts:
        for one in legs.by_meaning(text, limits):
            known = best.setdefault(one.message_id, one)
            if one.score > known.score:
                best[one.message_id] = one
    best.pop(message_id, None)
    return Found(by_leg("semantic", sorted(best.values(), key=lambda c: (-c.score, c.message_id))))


def message_id_in(query: str) -> str | None:
    """Return what a pasted Message-ID, with or without brackets or in a link, may stand for."""
    match = _PASTED.fullmatch(query.strip())
    return unquote(match[1]) if match else None


def by_thread(ranked: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    """Return candidates by thread, threads in the order of their best."""
    threads: dict[str, list[Candidate]] = {}
    for one in ranked:
        threads.setdefault(one.thread_id or one.message_id, []).append(one)
    return threads


def _by_both(
    legs: Legs, request: Request, limits: Limits, questions: list[Question], words: Words
) -> Found:
    text = meaning_of(request.query)
    with ThreadPoolExecutor(1) as pool:
        # The model and the index work while Postgres does; the connection stays here.
        ahead = pool.submit(
            _timed,
            lambda: (
                legs.nearest(text, min(DEPTH, legs.deepest()), limits.filter)
                if limits.whole
                else None
            ),
        )
        ranking, words_ms = _timed(lambda: fulltext(legs.connection, questions, words, limits))
        first, nearest_ms = ahead.result()
    meant, rest_ms = _timed(lambda: legs.by_meaning(text, limits, first=first))
    mix = mix_of(ranking.covered)
    fused = fuse(meant, ranking.candidates, mix)
    threads = {"threads": lifted_threads(fused), "most": LIFTED_MESSAGES}
    members, members_ms = _timed(lambda: legs.listed("members", limits, **threads))
    explained = {
        "mix": asdict(mix),
        "covered": ranking.covered,
        "terms": [asdict(term) for term in ranking.terms],
        "semantic": len(meant),
        "fulltext": len(ranking.candidates),
        "members": len(members),
        "ms": {
            "nearest": nearest_ms,
            "chunks": rest_ms,
            "fulltext": words_ms,
            "members": members_ms,
        },
    }
    return Found(joined(fused, members), Asked(questions, words, ranking.terms), explained)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return work(), round((time.perf_counter() - began) * 1000, 1)
