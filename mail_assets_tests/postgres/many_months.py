"""A mail database of many small months, made by SQL, to measure the rows that statements read.

Months 0 to MONTHS - 1 of the list KNOWN are there at the last `analyze`; its last one, `HERE`, came
after it, as the month of every run does, and so did all months of the list NEW, the last steps of
all months, and the index NEW_INDEX.
"""

from typing import Any, LiteralString

import psycopg

MONTHS = 240
MESSAGES = 30
CHUNKS = 2

INDEX, NEW_INDEX, BUCKET = "lance:here mail", "lance:here more", "lance:here"
HERE = f"{2000 + MONTHS // 12}-{MONTHS % 12 + 1:02d}"
KNOWN, NEW = "dev", "new"

VIEW: LiteralString = """
    create temporary view new_messages as
    select l.list, m, to_char(date '2000-01-01' + m * interval '1 month', 'YYYY-MM') as month, n,
           m || '-' || n || '@' || l.list as message_id, md5(m || '-' || n || l.list) as key_prefix
      from current_setting('test.list') as l (list),
           generate_series(current_setting('test.first')::int,
                           current_setting('test.last')::int) m,
           generate_series(1, current_setting('test.messages')::int) n"""

#: Message n of month m answers message n of the month before: threads go on over eight months.
FILL: tuple[LiteralString, ...] = (
    """
    insert into messages
    select list, month, message_id, 0, '', sha256(message_id::bytea),
           timestamptz '2000-01-01' + m * interval '1 month' + n * interval '1 hour', 'date', '',
           'About ' || n, 'About ' || n, 'Ann', 'ann-' || n || '@example.org', '{}',
           array['dev@example.org'], '{}', '{}',
           case when m % 8 = 0 then '{}' else array[(m - 1) || '-' || n || '@' || list] end,
           '', 'plain', 'The lease of ' || n || ' is held.', '[[0, 10, "text"]]', '[]', '{}', '{}',
           to_tsvector('simple', 'lease ' || n)
      from new_messages""",
    """
    insert into archive_entries
    select list, month, n, 1000 * n, 1000, sha256(message_id::bytea), 'stored', message_id, 0, '',
           null, null
      from new_messages""",
    """
    insert into archive_entries
    select list, month, 1000, 0, 1, '', 'removed', null, null, null, null, null
      from new_messages where n = 1""",
    """
    insert into quarantine select list, month, 1001, 0, 1, '', '' from new_messages where n = 1""",
    """
    insert into removals (digest, kind, reason, removed_by)
    select sha256(convert_to('removed ' || m || list, 'UTF8')), 'message', '', ''
      from new_messages where n = 1""",
    """
    insert into removed_messages (list, month, ordinal, removal, message_digest, key_prefix)
    select list, month, 1000, sha256(convert_to('removed ' || m || list, 'UTF8')),
           sha256(convert_to('removed ' || m || list, 'UTF8')), 'removed-' || m
      from new_messages where n = 1""",
    """
    insert into threads
    select message_id, (m - m % 8) || '-' || n || '@' || list, null, null,
           (m - m % 8) || '-' || n || '@' || list, m % 8, m % 8, false
      from new_messages""",
    """
    insert into thread_summaries
    select message_id, 'rules', true, sha256(message_id::bytea), 8, now(), now(), '{Ann}', '{}',
           jsonb_build_array(jsonb_build_object(
               'message_id', message_id, 'start', 0, 'end', 3, 'text', 'The', 'also', '[]'::jsonb)),
           '[]'
      from new_messages where m % 8 = 0""",
    """
    insert into thread_aliases
    select 'alias of ' || message_id, message_id, true from new_messages""",
    """
    insert into chunks
    select key_prefix || '#' || i, list, month, message_id, 0, i, 'The lease', '{0,9}', 3,
           sha256(convert_to(case when n = 1 then 'the same everywhere'
                                  else message_id || i end, 'UTF8'))
      from new_messages, generate_series(0, current_setting('test.chunks')::int - 1) i""",
    """
    insert into vectors
    select current_setting('test.index'), key, list, month, text_hash, true
      from chunks where (list, month) in (select list, month from new_messages)""",
    """
    insert into words
    select current_setting('test.index'), key_prefix, list, month, '', true from new_messages""",
    """
    insert into mbox_archives (list, month, source, object_key, found, dialect)
    select list, month, '', 'key of ' || list || month, current_setting('test.messages')::int,
           'plain'
      from new_messages where n = 1""",
    """
    insert into indexes values (current_setting('test.bucket'), 'mail', '', '', '')
    on conflict do nothing""",
    """
    insert into patches
    select list, month, message_id, 0, 0, 'patch', 'body', '', 'About ' || n, 'About ' || n,
           m || ' about ' || n, '{}', 1, null, null, 'Ann', m || '-' || n || '@example.org',
           timestamptz '2000-01-01' + m * interval '1 month', md5(message_id), '[{"path": "a"}]',
           1, 1, 1, '{1}', '', '{}', '', '[]', '{}', '', '{}'
      from new_messages""",
    """
    insert into patch_series
    select message_id, 0, hashtextextended(message_id, 0), list, month, 0, message_id, 0, 0, null,
           '{}', false, false, false, true,
           case when n = 1 and m % 8 = 0 then 'open' else 'applied' end, null, null, null, '{}'
      from new_messages""",
    """
    insert into patch_keys
    select hashtextextended(message_id || i, 1), 86400 * 30 * m, hashtextextended(message_id, 0),
           i = 0
      from new_messages, generate_series(0, 2) i""",
    """
    insert into patch_outcomes
    select message_id, 0, 'applied', 0, 7, '{}', '', '{}', false, true, 'bob@example.org', 'Bob',
           timestamptz '2000-01-01' + m * interval '1 month',
           array[(m - 1) || '-' || n || '@' || list]
      from new_messages where n % 3 = 0""",
    """
    insert into commits
    select list, month, 'crane of ' || list, md5(message_id), '{}', 'Ann',
           m || '-' || n || '@example.org', timestamptz '2000-01-01' + m * interval '1 month',
           'Bob', 'bob@example.org', timestamptz '2000-01-02' + m * interval '1 month',
           'About ' || n, m || ' about ' || n, '', '[]', array[message_id], '{}', '{}',
           '[{"path": "a"}]', 1, 1, md5(message_id), '{1}', '{}'
      from new_messages""",
    """
    insert into commit_links
    select 'crane of ' || list, md5(message_id), message_id, 'applied', 0, '{patch-id}'
      from new_messages""",
    """
    insert into commit_link_months
    select list, month, '{"commits": 30}', '' from new_messages where n = 1""",
    """
    insert into commit_link_sources
    select 'commits', list, month, '' from new_messages where n = 1""",
    """
    insert into encoded_texts (fingerprint, text_hash, vector)
    select 'static', text_hash, '' from chunks
     where (list, month) in (select list, month from new_messages)
    on conflict do nothing""",
)

PARTITIONS: LiteralString = """
    insert into partitions
    select asset, list, month, 'made from ' || current_setting('test.index'),
           asset || list || month,
           jsonb_build_object('stored', 1, 'chunks', 1, 'texts', 1, 'documents', 1)
      from mbox_archives, unnest(%s::text[]) as asset
    on conflict do nothing"""
#: Another index of the same mail, which a new encoder has begun.
SECOND_INDEX: tuple[LiteralString, ...] = (
    "insert into vectors select %s, key, list, month, digest, written from vectors",
    "insert into words select %s, key, list, month, digest, written from words",
)
OF_MONTH: LiteralString = "select {} from {} where (list, month) = (%(list)s, %(month)s) order by 1"
KEYS_OF_MONTH: LiteralString = """
    select k.key from patch_keys k join patch_series s using (ref)
     where (s.list, s.month) = (%(list)s, %(month)s) order by 1"""

#: Those of each month before the last analyze, and after it: the steps are new.
FIRST_STEPS, LAST_STEPS = ["messages", "words", "chunks"], ["embeddings", "vectors"]


def fill_known(connection: psycopg.Connection) -> None:
    """Fill a database: many months of a list."""
    _begin(connection)
    _fill(connection, KNOWN, 0, MONTHS - 1)
    connection.execute(PARTITIONS, [FIRST_STEPS])


def fill_new(connection: psycopg.Connection, *, analyzed: bool) -> None:
    """Fill what comes after the many months: one more, and a list that is new.

    With `analyzed` false the planner knows nothing, as in the first minutes of a backfill.
    """
    _begin(connection)
    if analyzed:
        connection.execute("vacuum (analyze)")
    _fill(connection, NEW, 0, MONTHS - 1)
    connection.execute("truncate thread_changes, summary_changes, patch_changes")
    for list_name in (KNOWN, NEW):
        _fill(connection, list_name, MONTHS, MONTHS)
    connection.execute(PARTITIONS, [FIRST_STEPS + LAST_STEPS])
    for query in SECOND_INDEX:
        connection.execute(query, [NEW_INDEX])


def _begin(connection: psycopg.Connection) -> None:
    for name, value in {
        "messages": MESSAGES,
        "chunks": CHUNKS,
        "index": INDEX,
        "bucket": BUCKET,
    }.items():
        _set(connection, name, value)
    connection.execute(VIEW)


def _fill(connection: psycopg.Connection, list_name: str, first: int, last: int) -> None:
    for name, value in {"list": list_name, "first": first, "last": last}.items():
        _set(connection, name, value)
    for query in FILL:
        connection.execute(query)


def _set(connection: psycopg.Connection, name: str, value: object) -> None:
    connection.execute("select set_config('test.' || %s, %s, false)", [name, str(value)])


def month_values(
    connection: psycopg.Connection, list_name: str, index_name: str = INDEX
) -> dict[str, Any]:
    """Return the values of parameters by their names: those of the last month of a list."""
    here = {"list": list_name, "month": HERE}

    def column(query: LiteralString) -> list[Any]:
        return [value for (value,) in connection.execute(query, here).fetchall()]

    ids = column(
        "select message_id from messages where (list, month) = (%(list)s, %(month)s) order by 1"
    )
    keys = column("select key from chunks where (list, month) = (%(list)s, %(month)s) order by 1")
    hashes = column(
        "select text_hash from chunks where (list, month) = (%(list)s, %(month)s) order by key"
    )
    digests = column(
        "select removal from removed_messages where (list, month) = (%(list)s, %(month)s)"
    )
    count = len(ids)
    return {
        **here,
        "lists": [list_name] * count,
        "months": [HERE] * count,
        "message_id": ids[0],
        "message_ids": ids,
        "ids": ids,
        "id": ids[0],
        "changed": ids,
        "variants": [0] * count,
        "versions": ["2024-03-01 00:00+00"] * count,
        "firsts": [1] * count,
        "ordinals": [*range(count)],
        "key_prefixes": [key.partition("#")[0] for key in keys],
        "keys": keys,
        "hashes": hashes,
        "vectors": [b""] * len(hashes),
        "digests": digests * len(keys),
        "digest": digests[0],
        "removals": digests,
        "refs": column(OF_MONTH.format("ref", "patch_series")),
        "series": ids,
        "key_numbers": column(KEYS_OF_MONTH),
        "ats": [86400.0 * 30 * MONTHS] * 3 * count,
        "window": 6,
        "span": 100.0,
        "places": [0] * count,
        "repository": f"crane of {list_name}",
        "repositories": [f"crane of {list_name}"] * count,
        "shas": column(OF_MONTH.format("sha", "commits")),
        "patch_ids": column(OF_MONTH.format("patch_id", "patches")),
        "titles": column(OF_MONTH.format("title_key", "patches")),
        "longest": "400 days",
        "email": f"{MONTHS}-1@example.org",
        "earliest": "2019-01-01",
        "latest": "2020-02-01",
        "numbers": [1],
        "removal": digests[0],
        "after": "",
        "threads": [f"{MONTHS - MONTHS % 8}-1@{list_name}"],
        "thread_id": f"{MONTHS - MONTHS % 8}-1@{list_name}",
        "placeholders": [f"placeholder of {x}" for x in ids],
        "named": [True] * count,
        "index_name": index_name,
        "bucket": BUCKET,
        "name": "mail",
        "figure": "chunks",
        "asset": "messages",
        "fingerprint": "static",
        "encoder": index_name,
        "table": "messages",
        "language": "simple",
        "languages": ["simple"],
        "senders": ["ann-1@example.org"],
        "addresses": ["ann-1@example.org"],
        "entries": ["ann-1@example.org"],
        "assets": ["messages"],
        "of_lists": [list_name],
        "of_months": [HERE],
        "of_digests": ["x"],
        "days": 200,
        "first": 0,
        "last": count,
        "most": 10_000,
        "timeout": "0",
        "object_key": f"key of {list_name}{HERE}",
        "kind": "message",
        "outcome": "stored",
        "counts": "{}",
        "report": "{}",
    }
