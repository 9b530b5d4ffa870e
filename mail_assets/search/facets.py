"""How many messages match, by list, year, author, sender and kind.

Of a query of conditions alone (fields, phrases, what is excluded) all messages that meet them are
counted where an index finds them: up to MAX_COUNTED copies, and of required words so many of the
newest as are looked at (max_depth); else, and where many of the newest messages meet them, these
alone. Of a query with words that may be missing nearly every message matches a little; what the
legs found is counted, on all pages, as far as its score is asked for.
"""

from collections.abc import Iterable, Mapping

import psycopg

from mail_assets.search.candidates import Candidate
from mail_assets.search.field_conditions import FieldCondition
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext_leg import find_newest, find_required, max_depth
from mail_assets.search.look_up import LookedUp
from mail_assets.search.newest import find_horizon, reads_little
from mail_assets.search.page import select_scored
from mail_assets.search.response import Facets
from mail_assets.search.retrieval import Retrieval
from mail_assets.search.syntax import ParsedRequest

#: Copies of messages that are counted: this bounds the cost.
MAX_COUNTED = 10_000
#: Of the newest messages (filters.MAX_WALKED) so many are enough to say how they are spread. They
#: are a twentieth, and as many of all would take an index long to read.
MANY = 500
#: Authors and senders that are named.
MAX_AUTHORS = 20


#: Of a request that no message can meet.
NO_FACETS = Facets(
    0, at_least=False, lists={}, months={}, years={}, authors={}, senders={}, kinds={}
)


def count_facets(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter, found: Retrieval
) -> Facets:
    """Return how many messages match a request, for which `found` was found.

    Raises:
        WordsError: the index of words is missing or fails.
    """
    candidates = select_scored(parsed.request, found.candidates)
    if found.looked_up is None:  # an id was pasted
        return _count_named(connection, filters, candidates)
    if not parsed.is_exact or parsed.request.min_score is not None:
        return _count_named(connection, filters, candidates, at_least=True)
    counted = _count_all(connection, found.looked_up)
    if counted.at_least and counted.total < len(candidates):
        return _count_named(connection, filters, candidates, at_least=True)
    return counted


def _count_named(
    connection: psycopg.Connection,
    filters: MessageFilter,
    candidates: Iterable[Candidate],
    *,
    at_least: bool = False,
) -> Facets:
    ids = sorted(one.message_id for one in candidates)
    named = filters.require_field(FieldCondition("ids", ids))
    return _count(connection, named, at_least=at_least)


def _count_all(connection: psycopg.Connection, looked_up: LookedUp) -> Facets:
    """Return how many messages meet the conditions: all that do, or those of the newest."""
    filters = looked_up.filters
    ids = looked_up.passing
    most = min(MAX_COUNTED, max_depth(looked_up.query))
    if ids is None:
        ids = find_required(looked_up, most)
    if ids is not None:
        return _count(connection, filters.require_field(FieldCondition("ids", [*ids])))
    if newest_ids := find_newest(looked_up, most):
        named = filters.require_field(FieldCondition("ids", newest_ids.message_ids))
        return _count(connection, named, at_least=True)
    is_left = find_horizon(connection, filters) is not None
    newest = _count(connection, filters.walk(), at_least=is_left)
    if is_left and newest.total < MANY and reads_little(connection, filters):
        return _count(connection, filters.find_by_index())
    return newest


def _count(
    connection: psycopg.Connection, filters: MessageFilter, *, at_least: bool = False
) -> Facets:
    rows = connection.execute(
        filters.statement("facets"), {**filters.parameters, "most": MAX_COUNTED + 1}
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for facet, value, messages in rows:
        counts.setdefault(facet, {})[value] = messages
    cut = counts.get("copies", {}).get("", 0) > MAX_COUNTED
    return Facets(
        total=counts.get("messages", {}).get("", 0),
        at_least=cut or at_least,
        lists=_most_first(counts.get("list", {})),
        months=dict(sorted(counts.get("month", {}).items())),
        years=dict(sorted(counts.get("year", {}).items())),
        authors=_first_of(counts.get("author", {})),
        senders=_first_of(counts.get("sender", {})),
        kinds=_most_first(counts.get("kind", {})),
    )


def _first_of(counts: Mapping[str, int]) -> dict[str, int]:
    return dict([*_most_first(counts).items()][:MAX_AUTHORS])


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
