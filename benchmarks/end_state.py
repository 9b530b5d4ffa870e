"""End state of a home: a digest of each table, file of the store and index.

Two ways to the same mail are compared by it: times, durations and counters are left out.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping

import lancedb
import psycopg
from psycopg import sql

from mail_assets.lance import lance_location
from mail_assets.settings.settings import Settings
from mail_assets.store.open import open_store

#: Columns that say when something was done, or how long it took.
VOLATILE = [
    *("applied_at", "fetched_at", "updated_at", "noticed_at", "made_at", "since", "at"),
    *("counts", "source", "checksum"),  # a checksum is over such columns too
]

Digests = dict[str, str]


def digest_home(settings: Settings, environ: Mapping[str, str] = os.environ) -> Digests:
    """Return a digest of each table, file and index by its name."""
    found: Digests = {}
    places = {"VECTORS": settings.vectors, "WORDS": settings.words}
    with settings.database.connect("compare") as connection:
        for (table,) in connection.execute(
            "select tablename from pg_tables where schemaname = 'public' order by 1"
        ).fetchall():
            found[f"table {table}"] = _digest(_rows(connection, table, places))
    store = open_store(settings.store)
    # its keys, not its files: what a killed writer left beside them goes after a day
    for key in store.keys(""):
        with store.fetch(key) as path:
            found[f"file {key}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    for url in places.values():
        uri, options = lance_location(url.removeprefix("lance:"), environ)
        database = lancedb.connect(uri, storage_options=options)
        for name in database.list_tables().tables:
            rows = database.open_table(name).to_arrow().sort_by("key")
            found[f"index {name}"] = _digest(map(repr, rows.to_pylist()))
    return found


def list_differences(expected: Digests, found: Digests) -> list[str]:
    """Return the names of what is not the same in both, in order."""
    names = {*expected, *found}
    return sorted(name for name in names if expected.get(name) != found.get(name))


def _rows(connection: psycopg.Connection, table: str, places: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of a table, without what is volatile and wherever the indexes are.

    An index is known by its bucket's URL: in the manifests and in the digests of its partitions,
    which are over the manifests. The digest of the summaries is made of all changes so far.
    """
    row: sql.Composable = sql.SQL("to_jsonb(t) - %(volatile)s::text[]")
    if table == "partitions":
        row += sql.SQL(
            " - case when asset in ('vectors', 'words', 'thread_summaries') then 'digest' "
            "else '' end"
        )
    if table == "messages":
        row += sql.SQL(" - case when arrival_source = 'loaded' then 'arrived_at' else '' end")
    query = sql.SQL("select ({})::text from {} t order by 1").format(row, sql.Identifier(table))
    found = []
    for (text,) in connection.execute(query, {"volatile": VOLATILE}):
        for name, url in places.items():
            text = text.replace(url, name)
        found.append(text)
    return iter(sorted(found))


def _digest(lines: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode(errors="surrogatepass") + b"\n")
    return digest.hexdigest()
