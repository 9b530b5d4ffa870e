"""A query in lexemes, asked for and answered at once."""

from collections.abc import Iterable, Mapping

import psycopg

from mail_assets.search.language.syntax import ParsedRequest
from mail_assets.search.query import Query, ask_query


def read_query(
    connection: psycopg.Connection,
    request: ParsedRequest,
    languages: Mapping[str, str],
    lists: Iterable[str],
) -> Query:
    """Return a query for some lists; `languages` maps lists to text search configurations."""
    return ask_query(connection, request, languages, lists).read()
