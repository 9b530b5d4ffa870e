"""Facets: numbers of matching messages by list, month, year, author, sender and kind.

- A query of conditions only (fields, phrases, excluded words) counts all messages that meet them,
  up to MAX_COUNTED copies, if an index finds them. For required words it counts the newest that are
  read (MAX_DEPTH). If no index finds them, or if many of the newest messages meet them, it counts
  the newest messages only.
- A query with optional words matches nearly every message a little. So it counts the candidates
  that all pages share and that reach the minimum score of the request.
"""

from collections.abc import Mapping

import psycopg

from mail_assets.search.by_date import find_horizon, find_newest, reads_little
from mail_assets.search.filters import MessageFilter
from mail_assets.search.fulltext import MAX_DEPTH, find_required
from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.look_up import LookedUp
from mail_assets.search.page import select_scored
from mail_assets.search.response import Facets
from mail_assets.search.retrieval import RankedMatches

#: Most message copies that are counted; this bounds the cost.
MAX_COUNTED = 10_000
#: Matches among the newest messages (filters.MAX_WALKED) that are enough for facets. They are a
#: twentieth of those messages; if as many of all messages match, an index takes long to read.
MANY = 500
#: Most authors, and most senders, that are named.
MAX_AUTHORS = 20
#: The facets of a request that no message can meet.
NO_FACETS = Facets(
    0, at_least=False, lists={}, months={}, years={}, authors={}, senders={}, kinds={}
)


def count_facets(
    connection: psycopg.Connection,
    parsed: ParsedRequest,
    filters: MessageFilter,
    found: RankedMatches,
) -> Facets:
    """Count the messages that match a request; `found` are its ranked matches."""
    scored = [] if found.dated else select_scored(parsed.request, found.first_pool)
    ids = sorted(one.message_id for one in scored)
    named = filters.require_ids(ids)
    if found.looked_up is None:  # an id was pasted
        return _count(connection, named)
    if not parsed.is_exact or parsed.request.min_score is not None:
        return _count(connection, named, at_least=True)
    counted = _count_all(connection, found.looked_up)
    if counted.at_least and counted.total < len(ids):
        return _count(connection, named, at_least=True)
    return counted


def _count_all(connection: psycopg.Connection, looked_up: LookedUp) -> Facets:
    """Count the messages that meet the conditions: all of them, or only among the newest."""
    filters = looked_up.filters
    ids = looked_up.passing.ids
    most = min(MAX_COUNTED, MAX_DEPTH)
    if ids is None:
        ids = find_required(looked_up, most)
    if ids is not None:
        return _count(connection, filters.require_ids(ids))
    if newest_ids := find_newest(connection, looked_up, most):
        named = filters.require_ids(newest_ids.message_ids)
        return _count(connection, named, at_least=True)
    is_left = find_horizon(connection, filters) is not None
    newest = _count(connection, filters.walk(), at_least=is_left)
    if is_left and newest.total < MANY and reads_little(connection, filters):
        return _count(connection, filters.find_by_index())
    return newest


def _count(
    connection: psycopg.Connection, filters: MessageFilter, *, at_least: bool = False
) -> Facets:
    parameters = {**filters.parameters, "most": MAX_COUNTED + 1}
    counts: dict[str, dict[str, int]] = {}
    for facet, value, messages in connection.execute(filters.statement("facets"), parameters):
        counts.setdefault(facet, {})[value] = messages
    cut = counts.get("copies", {}).get("", 0) > MAX_COUNTED
    return Facets(
        total=counts.get("messages", {}).get("", 0),
        at_least=cut or at_least,
        lists=_sort(counts.get("list", {})),
        months=dict(sorted(counts.get("month", {}).items())),
        years=dict(sorted(counts.get("year", {}).items())),
        authors=_sort(counts.get("author", {}), MAX_AUTHORS),
        senders=_sort(counts.get("sender", {}), MAX_AUTHORS),
        kinds=_sort(counts.get("kind", {})),
    )


def _sort(counts: Mapping[str, int], most: int | None = None) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most])
