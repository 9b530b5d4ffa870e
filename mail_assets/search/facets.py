"""How many messages match, by list, year, author and kind.

Where the newest come first, all messages that meet the conditions are counted, up to MAX_COUNTED of
the newest. Where the best come first nearly every message matches a little; counted is what the
legs found, on all pages.
"""

from collections.abc import Mapping

import psycopg

from mail_assets.search.field_conditions import FieldCondition
from mail_assets.search.filters import MessageFilter
from mail_assets.search.response import Facets
from mail_assets.search.retrieval import Retrieval

#: Copies of messages that are counted: this bounds the cost.
MAX_COUNTED = 10_000
#: Authors that are named.
MAX_AUTHORS = 20


#: Of a request that no message can meet.
NO_FACETS = Facets(0, at_least=False, lists={}, years={}, authors={}, kinds={})


def count_facets(
    connection: psycopg.Connection, filters: MessageFilter, found: Retrieval
) -> Facets:
    """Return how many messages match a request, of which `found` was found."""
    ranks = found.query is None or found.query.ranks
    if ranks:
        ids = sorted(one.message_id for one in found.candidates)
        filters = filters.require_field(FieldCondition("ids", ids))
    elif found.query:
        filters = filters.require_words(found.query.by_language)
    rows = connection.execute(
        filters.statement("facets"), {**filters.parameters, "most": MAX_COUNTED + 1}
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for facet, value, messages in rows:
        counts.setdefault(facet, {})[value] = messages
    cut = counts.get("copies", {}).get("", 0) > MAX_COUNTED
    return Facets(
        total=counts.get("messages", {}).get("", 0),
        at_least=ranks or cut,
        lists=_most_first(counts.get("list", {})),
        years=dict(sorted(counts.get("year", {}).items())),
        authors=dict([*_most_first(counts.get("author", {})).items()][:MAX_AUTHORS]),
        kinds=_most_first(counts.get("kind", {})),
    )


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
