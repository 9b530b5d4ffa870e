"""The semantic leg: messages ranked by their chunk that is nearest to the query."""

from collections.abc import Iterable

from mail_assets.indexes.vectors import MAX_ID
from mail_assets.search.live_index import VectorSearch
from mail_assets.vectors.filters import Filter
from mail_assets.vectors.index import Match

#: Chunks that hybrid asks for, and that are enough where filters are applied after the index:
#: 100 to 400 rank no better (docs/search-experiments.md, "Depth"), and 100 take half as long again.
HYBRID_CHUNKS = 50
#: Chunks that the semantic mode asks for; more for a page that ends beyond a third of them.
SEMANTIC_DEPTH = 100
#: Chunks that are looked at where filters are applied after the index and few of them pass.
MAX_NEAREST = 2_000


def search_vectors(
    index: VectorSearch,
    text: str,
    where: Filter | None,
    passing: Iterable[str] | None = None,
    depth: int = HYBRID_CHUNKS,
    *,
    from_mail: bool = False,
) -> list[Match]:
    """Return up to `depth` chunks that match a filter of the index, nearest first.

    What the index does not know of a request is checked later: see stored.py. `passing` are the ids
    of the few messages that pass, where somebody knows them: they take the place of the filter. A
    query is kept with its vector, a text `from_mail` is not.

    Raises:
        VectorError: the index is missing or fails.
    """
    if passing is not None:
        ids = sorted({one[:MAX_ID] for one in passing})
        if not ids:
            return []
        where = {"message_id": {"$in": ids}}
    top_k = min(depth, index.max_matches())
    return index.nearest(text, top_k, where, from_mail=from_mail)
