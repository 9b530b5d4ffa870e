"""The evidence for an answer: excerpts of the mail that search finds, and their sentences.

Search and database are needed here and not while an answer is written, which may take a minute.

[outcomes] What was decided in the threads of the best hits, as their summaries have it.

A decision often stands in a message that says nothing of the question ("Applied, thanks."), so that
search does not rank it. It is an excerpt like others: cited is the message, not the summary.

[conversation] Follow-up questions: the earlier questions and answers that they are asked in.
"""

import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

import psycopg

from mail_assets.answers.answer import CitationFilter, Turn
from mail_assets.answers.excerpts import HEADER_TOKENS, Excerpt, Hide, find_excerpts, show_all
from mail_assets.answers.sentences import Meter, WeighedSentence, weigh_sentences
from mail_assets.postgres.statements import statement
from mail_assets.search.fusion import MIN_STRENGTH
from mail_assets.search.language.request import MAX_QUERY, Mode, Request
from mail_assets.search.response import Hit, HitExplanation, Response
from mail_assets.search.searcher import Searcher
from mail_assets.tables.messages import utc

#: Threads whose outcomes are read, those of the best hits.
MAX_THREADS = 3
#: The share of the budget that outcomes may take.
BUDGET_SHARE = 1 / 8


def find_outcomes(
    connection: psycopg.Connection, hits: Sequence[Hit], budget: int, hide: Hide = show_all
) -> list[Excerpt]:
    """Return the sentences that state the outcomes of the best threads, excerpts from number 1.

    Only messages that search has found are read: the others need not pass its filters. Those of a
    message that is no hit have the score 0.
    """
    threads = [*dict.fromkeys(hit.thread_id for hit in hits if hit.thread_id)][:MAX_THREADS]
    known = {hit.message_id: hit for hit in hits}
    found = [*known, *(one for hit in hits for one in hit.in_thread)]
    parameters = {"threads": threads, "found": found}
    excerpts: list[Excerpt] = []
    left = budget * BUDGET_SHARE
    for row in connection.execute(statement("answer", "outcomes"), parameters).fetchall():
        start, around, first, text, message_id = row[:5]
        left -= count_tokens(text)
        if left < 0:
            break
        hit = known.get(message_id) or _build_hit(*row[4:])
        text = hide(around, first, first + len(text))
        excerpts.append(Excerpt(len(excerpts) + 1, hit, ((start, start + len(text)),), text))
    return excerpts


def count_tokens(text: str) -> int:
    """Return how many tokens a sentence takes in a prompt, at most: one for each byte."""
    return HEADER_TOKENS + len(text.encode())


def _build_hit(message_id: str, thread_id: str, lists: list[str], *about: Any) -> Hit:
    """Return a message as a hit that says nothing of the question."""
    month, subject, from_name, from_email, sent_at = about
    return Hit(
        message_id=message_id,
        lists=tuple(lists),
        month=month,
        subject=subject,
        from_name=from_name,
        from_email=from_email,
        sent_at=utc(sent_at),
        score=0.0,
        thread_id=thread_id,
        chunks=(),
        why=HitExplanation({}, (), None, 0.0),
        attachments=(),
    )


#: Earlier questions and answers that count, the latest ones.
MAX_TURNS = 4
#: Characters of an earlier question or answer that count.
MAX_EARLIER = 1_000
#: Earlier questions whose words are searched for beside those of a follow-up.
SEARCHED_TURNS = 2


def bound_history(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the latest turns, cut, and without citations: their numbers are of other excerpts."""
    return tuple(
        Turn(turn.question[:MAX_EARLIER], _without_citations(turn.answer)[:MAX_EARLIER])
        for turn in turns[-MAX_TURNS:]
    )


def requests_in_context(request: Request, history: Sequence[Turn]) -> list[Request]:
    """Return what is searched for: the question with the latest ones before it, and by itself.

    "And when was that fixed?" finds nothing by itself; a new subject is not found beside the old.
    """
    if not history:
        return [request]
    earlier = _join(turn.question for turn in history[-SEARCHED_TURNS:])
    room = max(0, MAX_QUERY - len(request.query) - 1)
    return [replace(request, query=_join((earlier[:room], request.query))), request]


def _join(texts: Iterable[str]) -> str:
    return " ".join(text.strip() for text in texts).strip()


def _without_citations(answer: str) -> str:
    numbers = CitationFilter(())
    return numbers.feed(answer) + numbers.finish()


#: The share of a question's tokens that the encoder may not know: a name or two of another script.
MAX_UNKNOWN = 0.2


@dataclass(frozen=True)
class Evidence:
    """What a question is answered from.

    `confidence` tells how likely the archive has an answer, 0 to 1 (see _measure_confidence);
    `doubt` says in a line why nothing can be told of that.
    `sentences` are those of the excerpts that may stand in an answer, in their order.
    """

    question: str
    history: tuple[Turn, ...]
    mode: str
    confidence: float
    excerpts: tuple[Excerpt, ...]
    sentences: tuple[WeighedSentence, ...]
    took_ms: float
    doubt: str = ""


def find_evidence(
    searcher: Searcher,
    connection: psycopg.Connection,
    request: Request,
    budget: int,
    history: Sequence[Turn] = (),
    hide: Hide = show_all,
) -> Evidence:
    """Search for a question in the context of earlier ones, and read the excerpts.

    `budget` is how many tokens of excerpts there may be, and `hide` what is made of their texts
    before anything else. Six parameters: the last two are left out by most.

    Raises:
        BudgetError: no excerpt fits into the budget.
        RequestError, VectorError, WordsError: see Searcher.search.
    """
    began = time.perf_counter()
    turns = bound_history(history)
    requests = requests_in_context(request, turns)
    found = [searcher.search(one) for one in requests]
    excerpts = _read_excerpts(connection, _merge_hits(found, request.limit), budget, hide)
    meter = Meter(
        weigh=functools.partial(searcher.weigh_texts, requests[0]),
        compare=functools.partial(searcher.compare_texts, requests[0]),
    )
    doubt = _find_doubt(searcher, requests[0], found[0])
    return Evidence(
        question=request.query,
        history=turns,
        mode=found[0].mode,
        confidence=0.0
        if doubt
        else max(_measure_confidence(searcher, *one) for one in zip(requests, found, strict=True)),
        excerpts=excerpts,
        sentences=tuple(weigh_sentences(excerpts, meter)) if excerpts else (),
        took_ms=(time.perf_counter() - began) * 1000,
        doubt=doubt,
    )


def _read_excerpts(
    connection: psycopg.Connection, hits: Sequence[Hit], budget: int, hide: Hide
) -> tuple[Excerpt, ...]:
    """Return the excerpts of the hits, then the outcomes of their threads that these lack."""
    outcomes = find_outcomes(connection, hits, budget, hide)
    reserved = sum(count_tokens(one.text) for one in outcomes)
    excerpts = find_excerpts(connection, hits, budget - reserved, hide)
    for one in outcomes:
        if not any(excerpt.contains(one) for excerpt in excerpts):
            excerpts.append(replace(one, number=len(excerpts) + 1))
    return tuple(excerpts)


def _merge_hits(found: Sequence[Response], limit: int) -> list[Hit]:
    """Return the first hits of each response, then the second ones, each message once."""
    hits: dict[str, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*(_claims(one) for one in found))):
        if hit is not None:
            hits.setdefault(hit.message_id, hit)
    return [*hits.values()][:limit]


def _claims(found: Response) -> Sequence[Hit]:
    """Return the hits; none where hybrid found them and even the best says next to nothing."""
    best = found.hits[0] if found.hits else None
    weak = best and best.why.ranks and best.score < MIN_STRENGTH
    return () if weak and found.mode == Mode.hybrid else found.hits


def _is_named(hit: Hit) -> bool:
    """Say whether a hit was found by its id, in the question."""
    return not hit.why.ranks and not hit.why.thread_score


def _find_doubt(searcher: Searcher, request: Request, found: Response) -> str:
    """Return why similarities say nothing of a question: its script is not the encoder's."""
    if found.mode == Mode.fulltext or not found.hits or _is_named(found.hits[0]):
        return ""
    share, encoder = searcher.find_unknown_share(request)
    if share <= MAX_UNKNOWN:
        return ""
    return (
        f"The encoder {encoder} does not know the script of the question ({share:.0%} of it): "
        "ask in mode fulltext, or set MAIL_ENCODER to a model of that language."
    )


def _measure_confidence(searcher: Searcher, request: Request, found: Response) -> float:
    """Return how likely the archive has an answer, 0 to 1.

    In fulltext and semantic it is the score of the best hit. In hybrid it is the mean of that, of
    the similarity of the nearest, and of the share of the question's words, by weight, that the
    best hit's thread has: who answers need not repeat the question, but in his thread somebody has
    said most of it.
    """
    if not found.hits:
        return 0.0
    best = found.hits[0]
    if found.mode != Mode.hybrid or _is_named(best):
        return best.score
    distances = [hit.why.distance for hit in found.hits if hit.why.distance is not None]
    similarity = 1.0 - min(distances, default=1.0)
    return (best.score + similarity + searcher.weigh_thread(request, best.message_id)) / 3
