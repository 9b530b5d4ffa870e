"""Fill a home with renamed copies of one of its lists, to measure search on a big archive.

    MAIL_HOME=... python -m benchmarks.enlarge LIST COPIES

The home holds LIST, loaded and indexed, and must be one that you can throw away. Copy K is the list
LIST-K: other ids and senders, or all copies of a message would be one hit; the same threads, dates
K years earlier, every lexeme that stands in at most RARE messages renamed by K, so that rare words
stay rare, vectors with noise of NOISE and length 1.
Written are messages, threads, patches with their states, chunks, the vectors, the manifest of the
live index, the documents of the word index, and the records that say so; 17 copies of 18,000
messages take some minutes. Add `[LIST-K]` tables to lists.toml to search them.
"""

import argparse
import hashlib
from collections.abc import Iterator

import numpy as np
import psycopg

from mail_assets.indexes.names import manifest_name
from mail_assets.indexes.words import MailWords, open_mail_words, read_digests
from mail_assets.month import ListMonth
from mail_assets.search.open import open_index
from mail_assets.settings.settings import load_settings
from mail_assets.steps.fill_index import make_documents
from mail_assets.tables.indexes import live_index, make_first_live, record_index
from mail_assets.vectors.index import Metadata, Vector, VectorIndex

RARE = 20
NOISE = 0.35
SEED = 7
#: Indexes that are quicker built anew than kept up.
REBUILT = ("messages_search", "messages_subject", "messages_receivers")

RARE_WORDS = """
create temporary table rare as
select word from ts_stat(format('select search from messages where list = %%L', %(source)s::text))
 where ndoc <= %(rare)s
"""

#: Values of a copy, by table and column; all other columns are those of the list. `copy` is the
#: number of a copy, `name` its list, and `prefix` begins its ids.
_MONTH = "(left(month, 4)::int - %(copy)s) || right(month, 3)"
_KEY = "left(encode(sha256(convert_to(%(prefix)s || {}, 'UTF8')), 'hex'), 32) || '#' || {}"
_WORDS = """
coalesce((select string_agg(
         quote_literal(l.lexeme || case when r.word is null then '' else %(prefix)s end)
         || coalesce(':' || (
            select string_agg(p || w, ',') from unnest(l.positions, l.weights) as at (p, w)), ''),
         ' ')
    from unnest(search) as l
    left join rare r on r.word = l.lexeme), '')::tsvector
"""
CHANGES = {
    "messages": {
        "message_id": "%(prefix)s || message_id",
        "sent_at": "sent_at - %(copy)s * interval '1 year'",
        "from_email": "%(prefix)s || from_email",
        "in_reply_to": "array(select %(prefix)s || id from unnest(in_reply_to) as i (id))",
        "refs": "array(select %(prefix)s || id from unnest(refs) as i (id))",
        "search": _WORDS,
    },
    "senders": {"address": "%(prefix)s || address"},
    "chunks": {
        "key": _KEY.format("key", "index"),
        "message_id": "%(prefix)s || message_id",
        "text_hash": "sha256(convert_to(%(prefix)s, 'UTF8') || text_hash)",
    },
    "vectors": {"key": _KEY.format("key", "split_part(key, '#', 2)")},
    "patches": {"message_id": "%(prefix)s || message_id"},
    "patch_series": {
        "ref": "hashint8extended(ref, %(copy)s)",
        **{
            column: f"%(prefix)s || {column}"
            for column in ("message_id", "series_id", "previous_id", "reason_id")
        },
    },
    "partitions": {},
}
#: Conditions besides the list; of `vectors` the live index.
ONLY = {"vectors": "and index_name = %(index)s"}
THREADS = """
insert into threads
select %(prefix)s || t.message_id, %(prefix)s || t.thread_id, %(prefix)s || t.parent_id,
       %(prefix)s || t.parent_message_id, %(prefix)s || t.root_id, t.depth, t.position, t.is_ghost,
       t.by_subject
  from threads t
 where exists (select from messages m where m.list = %(source)s and m.message_id = t.message_id)
"""
COLUMNS = """
select column_name from information_schema.columns
 where table_schema = 'public' and table_name = %s and is_generated = 'NEVER'
 order by ordinal_position
"""


def main() -> None:
    """Enlarge the home of the environment."""
    parser = argparse.ArgumentParser(description="Fill a home with renamed copies of a list.")
    parser.add_argument("list")
    parser.add_argument("copies", type=int)
    arguments = parser.parse_args()
    settings = load_settings()
    with settings.database.connect("enlarge") as connection:
        live = live_index(connection, settings.vectors)
        if live is None:
            raise SystemExit("no index is live: fill the home first")
        index = open_index(settings.database, settings.vectors, live.encoder, live.precision)
        name = manifest_name(settings.vectors, live.name)
        enlarge_tables(connection, arguments.list, arguments.copies, name)
        words = open_mail_words(settings.words)
        enlarge_words(connection, words, arguments.list, arguments.copies)
    enlarge_vectors(index, arguments.list, arguments.copies)
    index.maintain()


def enlarge_tables(connection: psycopg.Connection, source: str, copies: int, index: str) -> None:
    """Write the rows of every copy, in one transaction, and build the indexes anew."""
    with connection.transaction():
        # No trigger: threads are copied, and need not be built.
        connection.execute("set local session_replication_role = replica")
        connection.execute("set local synchronous_commit = off")
        definitions = connection.execute(
            "select indexdef, indexname from pg_indexes where indexname = any(%s)", [[*REBUILT]]
        ).fetchall()
        for _, name in definitions:
            connection.execute(f"drop index {name}".encode())
        connection.execute(RARE_WORDS, {"source": source, "rare": RARE})
        connection.execute("create index on rare (word)")
        statements = [*(write_copy(connection, table) for table in CHANGES), THREADS]
        for copy in range(1, copies + 1):
            values = {
                "source": source,
                "name": copy_name(source, copy),
                "copy": copy,
                "prefix": f"{copy}.",
                "index": index,
            }
            for text in statements:
                connection.execute(text.encode(), values)
            print(values["name"], flush=True)
        for definition, _ in definitions:
            connection.execute(definition.encode())
    connection.execute("vacuum analyze")


def write_copy(connection: psycopg.Connection, table: str) -> str:
    """Return the statement that copies the rows of a list in a table, whatever columns it has."""
    columns = [name for (name,) in connection.execute(COLUMNS, [table])]
    changes = {"list": "%(name)s", "month": _MONTH} | CHANGES[table]
    values = ", ".join(changes.get(name, name) for name in columns)
    return (
        f"insert into {table} ({', '.join(columns)}) select {values} from {table}"
        f" where list = %(source)s {ONLY.get(table, '')}"
    )


def enlarge_words(
    connection: psycopg.Connection, words: MailWords, source: str, copies: int
) -> None:
    """Write the documents of the list and of every copy, as they stand in the tables."""
    words.index.ensure()
    for name in (source, *(copy_name(source, copy) for copy in range(1, copies + 1))):
        months = connection.execute(
            "select distinct month from partitions where asset = 'messages' and list = %s", [name]
        ).fetchall()
        words.index.put(
            document
            for month in (ListMonth(name, month) for (month,) in sorted(months))
            for document in make_documents(connection, month, [*read_digests(connection, month)])
        )
        print("words", name, flush=True)
    words.index.maintain()
    record_index(connection, words.url, words.record)
    make_first_live(connection, words.url, words.name)


def copy_name(source: str, copy: int) -> str:
    """Return the list of a copy."""
    return f"{source}-{copy:02}"


def enlarge_vectors(index: VectorIndex, source: str, copies: int) -> None:
    """Write the vectors of every copy."""
    keys = [*index.find({"list": source})]
    stored = [*index.get(keys, data=True).values()]
    chance = np.random.default_rng(SEED)
    for copy in range(1, copies + 1):
        index.put(renamed(stored, source, copy, chance))
        print("vectors", copy_name(source, copy), flush=True)


def renamed(
    stored: list[Vector], source: str, copy: int, chance: np.random.Generator
) -> Iterator[Vector]:
    """Yield the vectors of a copy."""
    year = int(365.25 * 86_400)
    for one in stored:
        old = one.metadata
        noise = chance.standard_normal(len(one.values)) * NOISE / np.sqrt(len(one.values))
        values = one.values + noise
        fields: Metadata = {
            "list": copy_name(source, copy),
            "month": int(old["month"]) - 100 * copy,  # type: ignore[arg-type]
            "message_id": f"{copy}.{old['message_id']}"[:200],
            "sent_at": int(old["sent_at"]) - copy * year,  # type: ignore[arg-type]
        }
        key = hashlib.sha256(f"{copy}.{one.key}".encode()).hexdigest()[:32]
        scaled = (values / np.linalg.norm(values)).astype(np.float32)
        yield Vector(f"{key}#{one.key.partition('#')[2]}", scaled, {**old, **fields})


if __name__ == "__main__":
    main()
