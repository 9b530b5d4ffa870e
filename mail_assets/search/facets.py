"""How many messages match, by list, year, author, sender and kind.

Of a query of conditions alone (fields, phrases, what is excluded) all messages that meet them are
counted, up to MAX_COUNTED copies, the newest. Of one with words that may be missing nearly every
message matches a little; what the legs found is counted, on all pages.
"""

from collections.abc import Mapping

import psycopg

from mail_assets.search.field_conditions import FieldCondition
from mail_assets.search.filters import MessageFilter
from mail_assets.search.response import Facets
from mail_assets.search.retrieval import Retrieval
from mail_assets.search.syntax import ParsedRequest

#: Copies of messages that are counted: this bounds the cost.
MAX_COUNTED = 10_000
#: Authors and senders that are named.
MAX_AUTHORS = 20


#: Of a request that no message can meet.
NO_FACETS = Facets(
    0, at_least=False, lists={}, months={}, years={}, authors={}, senders={}, kinds={}
)


def count_facets(
    connection: psycopg.Connection, parsed: ParsedRequest, filters: MessageFilter, found: Retrieval
) -> Facets:
    """Return how many messages match a request, for which `found` was found."""
    exact = parsed.is_exact and found.query is not None
    if not exact:
        ids = sorted(one.message_id for one in found.candidates)
        filters = filters.require_field(FieldCondition("ids", ids))
    elif found.query is not None:
        filters = filters.require_words(found.query)
    rows = connection.execute(
        filters.statement("facets"), {**filters.parameters, "most": MAX_COUNTED + 1}
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for facet, value, messages in rows:
        counts.setdefault(facet, {})[value] = messages
    cut = counts.get("copies", {}).get("", 0) > MAX_COUNTED
    return Facets(
        total=counts.get("messages", {}).get("", 0),
        at_least=cut or not exact,
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
