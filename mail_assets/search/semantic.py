"""The semantic leg: messages by their chunk that is nearest to the question.

What does not live here: the model and the index (searcher.py opens them).
"""

from collections.abc import Callable, Sequence

import psycopg

from mail_assets.month import ListMonth
from mail_assets.search.candidate import Candidate, Copy
from mail_assets.search.filters import MAX_VALUES, Limits
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

#: Finds the vectors nearest to a text: (text, how many, filter) -> nearest first.
Nearest = Callable[[str, int, Filter | None], list[Match]]

#: Chunks that hybrid asks for, and that are enough where filters were applied behind the index:
#: 100 to 1,000 rank no better (docs/search.md), and 100 take half as long again.
DEPTH = 50
#: Chunks that the semantic mode asks for; more for a page that ends behind a third of them.
ALONE = 100


def semantic(
    connection: psycopg.Connection,
    nearest: Nearest,
    text: str,
    limits: Limits,
    depth: int,
    deepest: int,
    first: list[Match] | None = None,
) -> list[Candidate]:
    """Return messages by their nearest chunk; the score is the cosine similarity.

    Filters that the index does not know are applied behind it. Where few messages pass them, the
    index is asked for these alone, and nothing is missed; else it is asked for `depth` and for
    more and more, up to `deepest`. A vector whose chunk was replaced, or whose message changed
    and no longer passes, is left out: the bucket follows in a moment. `first` is the answer to
    the first query, where it is there already.
    """
    if not limits.whole:
        few = passing_few(connection, limits)
        if few is not None:
            if not few:
                return []
            limits = limits.to_messages(few)
            return _passing(connection, nearest(text, deepest, limits.filter), limits)
    top, where = min(depth, deepest), limits.filter
    matches = nearest(text, top, where) if first is None else first
    while True:
        found = _passing(connection, matches, limits)
        kept = sum(len(one.chunks) for one in found)
        if limits.whole or kept >= depth or len(matches) < top or top == deepest:
            return found
        top = min(4 * top, deepest)
        matches = nearest(text, top, where)


def passing_few(connection: psycopg.Connection, limits: Limits) -> list[str] | None:
    """Return the ids that pass, None where they are more than the index takes in a filter."""
    parameters = {**limits.parameters, "most": MAX_VALUES + 1}
    rows = connection.execute(limits.statement("few"), parameters).fetchall()
    return None if len(rows) > MAX_VALUES else [message_id for (message_id,) in rows]


def _passing(
    connection: psycopg.Connection, matches: Sequence[Match], limits: Limits
) -> list[Candidate]:
    parameters = {**limits.parameters, "keys": [match.key for match in matches]}
    rows = connection.execute(limits.statement("chunks"), parameters).fetchall()
    known = {row[0]: row[1:] for row in rows}
    found: dict[str, Candidate] = {}
    for match in matches:
        if match.key not in known:
            continue
        message_id, list_name, month, variant, thread_id = known[match.key]
        copy = Copy(ListMonth(list_name, month), variant)
        candidate = found.setdefault(
            message_id, Candidate(message_id, copy, thread_id, round(1.0 - match.distance, 6))
        )
        if candidate.copy == copy:
            candidate.chunks[match.key] = round(match.distance, 6)
    return [*found.values()]
