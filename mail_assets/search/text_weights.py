"""How much of a query a text or a thread has: its words weigh as in search, rare ones more."""

from collections.abc import Sequence

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.fulltext_leg import measure_coverage, weigh_query
from mail_assets.search.highlights import StemReader
from mail_assets.search.lexemes import match_any
from mail_assets.search.look_up import LookedUp

#: Messages of a thread that are looked at, those around the one that was found: who answers is near
#: who asks, and a thread of thousands has any word.
THREAD_MESSAGES = 60


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


def weigh_thread(connection: psycopg.Connection, found: LookedUp, message_id: str) -> float:
    """Return the share of the query's weight that a message has with its thread, 0 to less than 1.

    Of k words it is (k - 1) / k at most: whatever is found has one, so that one says nothing. They
    are counted in the language that knows most stop words.
    """
    languages = weigh_query(found.query, found.frequencies)
    lexemes = sorted({term.lexeme for one in languages for term in one.terms})
    parameters = {
        "message_id": message_id,
        "lexemes": lexemes,
        "queries": [match_any([lexeme]) for lexeme in lexemes],
        "most": THREAD_MESSAGES,
    }
    rows = connection.execute(statement("answer", "thread_lexemes"), parameters).fetchall()
    share = measure_coverage(languages, frozenset(lexeme for (lexeme,) in rows))
    words = min((len(one.terms) for one in languages if one.terms), default=1)
    return share * (1 - 1 / words)
