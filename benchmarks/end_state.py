"""End state of a home: a digest of each table, file of the store and index.

Two runs over the same mail can be compared by it: times, durations and counters are left out.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import lancedb
import psycopg
from psycopg import sql

from mail_assets.lance import lance_location
from mail_assets.settings.settings import Settings
from mail_assets.store.open import open_store

#: Columns that differ between equal runs: times, durations, counters.
VOLATILE = [
    *("applied_at", "fetched_at", "updated_at", "noticed_at", "made_at", "since", "at"),
    *("counts", "source", "checksum"),  # a checksum includes such columns
]

Digests = dict[str, str]
#: Comparable rows of each table.
Tables = dict[str, list[str]]


def digest_home(settings: Settings, environ: Mapping[str, str] = os.environ) -> Digests:
    """Return a digest of each table, file and index by its name."""
    found = {name: _digest(rows) for name, rows in read_tables(settings).items()}
    store = open_store(settings.store)
    # by key: temporary files of a killed writer are no keys, and are deleted after a day
    for key in store.keys(""):
        with store.fetch(key) as path:
            found[f"file {key}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    for url in _places(settings).values():
        uri, options = lance_location(url.removeprefix("lance:"), environ)
        database = lancedb.connect(uri, storage_options=options)
        for name in database.list_tables().tables:
            rows = database.open_table(name).to_arrow().sort_by("key")
            found[f"index {name}"] = _digest(map(repr, rows.to_pylist()))
    return found


def read_tables(settings: Settings) -> Tables:
    """Return the rows of each table by its name."""
    with settings.database.connect("compare") as connection:
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = 'public' order by 1"
        ).fetchall()
        places = _places(settings)
        return {f"table {name}": _rows(connection, name, places) for (name,) in tables}


def list_differences(expected: Digests, found: Digests) -> list[str]:
    """Return the names whose digests differ, sorted."""
    names = {*expected, *found}
    return sorted(name for name in names if expected.get(name) != found.get(name))


def list_differing_rows(expected: Iterable[str], found: Iterable[str]) -> Iterator[str]:
    """Yield the rows that only one state of a table has: `- ` expected, `+ ` found."""
    wanted, had = Counter(expected), Counter(found)
    yield from (f"- {row}" for row in (wanted - had).elements())
    yield from (f"+ {row}" for row in (had - wanted).elements())


def _places(settings: Settings) -> Mapping[str, str]:
    return {"VECTORS": settings.vectors, "WORDS": settings.words}


def _rows(connection: psycopg.Connection, table: str, places: Mapping[str, str]) -> list[str]:
    """Return the rows of a table, without volatile columns and places of the indexes.

    The URL of an index is in the manifests, and so in the digests of its partitions. The digest of
    the summaries depends on all former changes.
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
    return sorted(found)


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode(errors="surrogatepass") + b"\n")
    return digest.hexdigest()
