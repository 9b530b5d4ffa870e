"""How much of a query a text has: its words weigh as in search, rare ones more."""

from collections.abc import Sequence

from mail_assets.search.fulltext_leg import weigh_query
from mail_assets.search.highlights import StemReader
from mail_assets.search.look_up import LookedUp


def weigh_texts(stems: StemReader, found: LookedUp, texts: Sequence[str]) -> list[float]:
    """Return the share of the query's weight that each text has, 0 to 1.

    Of a query in several languages it is the share of the weight in the language that has most.
    """
    languages = weigh_query(found.query, found.frequencies)
    whole = max((one.weight for one in languages), default=0.0)
    if not whole:
        return [0.0] * len(texts)
    terms = [term for one in languages for term in one.terms]
    highlighter = stems.build_highlighter(found.query, terms, texts)
    return [min(1.0, highlighter.find(text).weight / whole) for text in texts]
