"""Loading a month writes the difference, keeps its senders, leaves other partitions alone."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.message import Attachment
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import statement
from mail_assets.reading.browsing import columns, show_message
from mail_assets.search.field_conditions import HIDDEN
from mail_assets.tables import messages
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.tables.messages import QuarantineRow, delete_rows, read_texts, replace_quarantine
from mail_assets.text.letters import has_unspaced
from mail_assets_tests.tables.rows import MONTH, NEXT_MONTH, OTHER_LIST, encode, load, stored, write


def ids(connection: psycopg.Connection, month: ListMonth = MONTH) -> list[str]:
    with connection.transaction():
        return [text.message_id for text in read_texts(connection, month)]


def unchanged(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return what changes with any write to a row: where it lies."""
    rows = connection.execute("select message_id, ctid::text from messages order by 1, 2")
    return rows.fetchall()


def found(connection: psycopg.Connection, language: str, query: str) -> list[str]:
    rows = connection.execute(
        "select message_id from messages where search @@ websearch_to_tsquery(%s, %s)"
        " order by message_id",
        (language, query),
    )
    return [name for (name,) in rows.fetchall()]


def test_month_is_stored_as_parsed(migrated: psycopg.Connection) -> None:
    row = stored(
        "1@example.org",
        "On Friday, Al wrote:\n> Why?\n\nBecause of “leases” 🙂.\n",
        headers="In-Reply-To: <0@example.org>\nReferences: <r@example.org> <0@example.org>\n"
        "Cc: =?utf-8?q?J=C3=B8_Holm?= <jo.holm@example.org>, al@example.org\n",
    )
    assert load(migrated, [row])[:2] == (1, 0)
    (shown,) = show_message(migrated, "1@example.org")
    message = row.message
    assert shown["body_text"] == message.body_text
    assert shown["sent_at"] == message.sent_at
    assert shown["refs"] == ["r@example.org", "0@example.org"]
    assert shown["in_reply_to"] == ["0@example.org"]
    assert shown["recipients"] == ["dev@example.org"]
    assert shown["cc"] == ["Jø Holm <jo.holm@example.org>", "al@example.org"]
    assert shown["segments"] == [[s.start, s.end, s.kind] for s in row.segments]
    assert len({s.kind for s in row.segments}) > 1
    with migrated.transaction():
        (text,) = read_texts(migrated, MONTH)
    assert text.segments == row.segments
    assert (text.variant, text.content_hash) == (0, message.content_hash)


def test_row_is_replaced_and_others_stay(migrated: psycopg.Connection) -> None:
    load(migrated, [stored(f"{n}@example.org", ordinal=n) for n in range(4)])
    before = dict(unchanged(migrated))
    changed = stored("1@example.org", "Something else, about vacuum.\n", ordinal=1)
    with migrated.transaction():
        assert write(migrated, [changed, stored("4@example.org", ordinal=4)]) == (2, {})
        assert delete_rows(migrated, MONTH, []) == 0
        gone = [("2@example.org", 0), ("3@example.org", 1), ("5@example.org", 0)]
        assert delete_rows(migrated, MONTH, gone) == 1
    assert ids(migrated) == [f"{n}@example.org" for n in (0, 1, 3, 4)]
    after = dict(unchanged(migrated))
    assert {name for name in before if after.get(name) == before[name]} == {
        "0@example.org",
        "3@example.org",
    }
    assert found(migrated, "english", "vacuuming") == ["1@example.org"]


#: Another value for a column of each type.
OTHER: dict[str, LiteralString] = {
    "text": "'from_line'", "text[]": "'{x}'", "jsonb": "'[[0, 1, \"x\"]]'", "tsvector": "'other'",
    "timestamp with time zone": "'2001-01-01'", "boolean": "not is_answer", "bytea": "'x'",
    "bigint": "checksum + 1",
}  # fmt: skip


def test_any_damaged_column_is_written_again(migrated: psycopg.Connection) -> None:
    received = "Received: from a by b.example.org; Fri, 1 Mar 2024 10:00:01 +0000\n"
    row = stored("1@example.org", headers=received)
    load(migrated, [row, stored("2@example.org", ordinal=1)])
    whole = "select to_jsonb(m) from messages m order by message_id"
    right = migrated.execute(whole).fetchall()
    written = [
        (name, kind)
        for name, kind, *_ in columns(migrated, "messages")
        if name not in ("list", "month", "message_id", "variant", "new_text_length")
    ]
    assert len(written) > 25
    for name, kind in written:
        with migrated.transaction():
            migrated.execute("set local session_replication_role = replica")
            migrated.execute(
                f"update messages set {name} = {OTHER[kind]} where message_id = %s".encode(),
                (row.message.message_id,),
            )
        assert migrated.execute(whole).fetchall() != right, name
        with migrated.transaction():
            assert write(migrated, [row]).written == 1, name
        assert migrated.execute(whole).fetchall() == right, name


def test_other_partitions_are_never_touched(migrated: psycopg.Connection) -> None:
    others = [NEXT_MONTH, OTHER_LIST]
    for month in others:
        load(migrated, [stored("1@example.org")], month)
    load(migrated, [stored("1@example.org"), stored("2@example.org", ordinal=1)])
    loaded = load(migrated, [])
    assert (loaded.written, loaded.deleted) == (0, 2)
    assert ids(migrated) == []
    for month in others:
        assert ids(migrated, month) == ["1@example.org"]


def test_several_contents_under_one_id_are_variants(migrated: psycopg.Connection) -> None:
    load(
        migrated,
        [
            stored("1@example.org", "One.\n"),
            stored("1@example.org", "Two.\n", variant=1, ordinal=1),
            stored("1@example.org", "Three.\n", variant=2, ordinal=2),
        ],
    )
    shown = show_message(migrated, "1@example.org")
    assert [(row["variant"], row["body_text"].strip()) for row in shown] == [
        (0, "One."),
        (1, "Two."),
        (2, "Three."),
    ]
    assert ["variant" in row["flags"] for row in shown] == [False, True, True]
    assert load(migrated, [stored("1@example.org", "One.\n")]).deleted == 2


def test_one_id_and_variant_twice_is_an_error(migrated: psycopg.Connection) -> None:
    load(migrated, [stored("0@example.org")])
    with pytest.raises(psycopg.errors.CardinalityViolation):
        load(migrated, [stored("1@example.org"), stored("1@example.org", "Else.\n")])
    assert ids(migrated) == ["0@example.org"]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_characters_postgres_refuses_end_no_line(text: str) -> None:
    assert "\0" not in stored("2@example.org", "a\0b\n").message.body_text
    row = stored("2@example.org")
    with pytest.raises(ValueError, match=r"NUL|surrogates"):
        encode(row._replace(message=row.message._replace(body_text=text)))


@pytest.mark.parametrize(
    "text", ["\\", "\t", "a\\tb", "\r\n", "\\.", "\\N", "{}", '"', "', ' x", "NULL"]
)
def test_any_text_comes_back_as_it_was(migrated: psycopg.Connection, text: str) -> None:
    """Signs that end a field, a line, an array or a COPY stand in every kind of column."""
    row = stored("1@example.org", variant=1)
    attached = Attachment(1, text, "text/plain", 1, "", False)
    message = row.message._replace(
        subject=text,
        body_text=text,
        references=(text, text),
        to=(Address(text, "jo@example.org"),),
        attachments=(attached,),
    )
    load(migrated, [row._replace(message=message, identifiers=[text])])
    (shown,) = show_message(migrated, "1@example.org")
    assert (shown["subject"], shown["body_text"], shown["refs"]) == (text, text, [text, text])
    assert shown["recipients"] == [f"{text} <jo@example.org>"]
    assert shown["identifiers"] == [text]
    assert shown["attachments"][0]["name"] == text


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("place", ["first", "middle", "last", "all"])
def test_row_that_postgres_refuses_is_left_out_alone(
    migrated: psycopg.Connection, count: int, place: str
) -> None:
    rows = [stored(f"{n}@example.org", ordinal=3 * n) for n in range(count)]
    at = {"first": {0}, "middle": {count // 2}, "last": {count - 1}, "all": {*range(count)}}[place]
    for n in at:  # a name of this length is no lexeme
        rows[n] = rows[n]._replace(identifiers=["x" * 3_000])
    with migrated.transaction():
        written = write(migrated, rows[::-1])
    reason = "PostgreSQL refuses it: word is too long (3000 bytes, max 2046 bytes) (54000)"
    assert written == (count - len(at), {3 * n: reason for n in at})
    assert ids(migrated) == [f"{n}@example.org" for n in range(count) if n not in at]


def test_words_are_stemmed_in_the_language_of_the_list(migrated: psycopg.Connection) -> None:
    body = "Los índices, buscando las conexiones; it runs.\n"
    load(migrated, [stored("en@example.org", body)], language="english")
    load(
        migrated,
        [stored("es@example.org", body)],
        ListMonth("ayuda", "2024-03"),
        language="spanish",
    )
    assert found(migrated, "spanish", "buscar") == ["es@example.org"]
    assert found(migrated, "english", "running") == ["en@example.org"]
    assert found(migrated, "simple", "los") == ["en@example.org"]  # a stop word of the other


@pytest.mark.parametrize("identifier", ["heapam.c", "pg_stat_activity", "40p01"])
def test_identifiers_are_found_whole(migrated: psycopg.Connection, identifier: str) -> None:
    body = "In src/backend/access/heap/heapam.c, see pg_stat_activity: ERROR 40P01.\n"
    load(migrated, [stored("1@example.org", body), stored("2@example.org", ordinal=1)])
    rows = migrated.execute(
        "select message_id from messages where search @@ quote_literal(%s)::tsquery", (identifier,)
    )
    assert rows.fetchall() == [("1@example.org",)]


def test_quotes_are_not_searched_and_the_subject_is(migrated: psycopg.Connection) -> None:
    body = "Al wrote:\n> deadlocks everywhere\n\nNo.\n"
    load(migrated, [stored("1@example.org", body, subject="Zebras")])
    assert found(migrated, "english", "deadlocks") == []
    assert found(migrated, "english", "zebra") == ["1@example.org"]


def test_huge_body_fits_its_index(migrated: psycopg.Connection) -> None:
    body = "\n".join(f"word{n}-of-{n * 7919}" for n in range(60_000))
    load(migrated, [stored("1@example.org", f"{body}\n")])
    assert found(migrated, "english", "word17") == ["1@example.org"]


@pytest.mark.parametrize(("letters", "joint"), [
    *((letters, "-") for letters in ("a", "ñ", "ẁ", "字", "𐐀")),
    *(("𐐀", joint) for joint in ("", " ", "_", ".")),
])  # fmt: skip
def test_largest_message_fits_its_indexes(
    migrated: psycopg.Connection, letters: str, joint: str
) -> None:
    """Every field at its limit, in letters of one to four bytes: nothing is refused."""
    words = [letters * 3 + joint + str(n) for n in range(100_000)]
    text = " ".join(words)
    long = letters * 100_000
    headers = (
        f"Cc: {long[:5_000]} <{long[:400]}@example.org>\n"
        f"References: <{long[:499]}@example.org> <{long[:490]}@x>\n"
        f"In-Reply-To: <{long[:490]}@y>\nList-Id: <{long}>\nX: y\n"
    )
    names = [f"{letters * 190}_{n}" for n in range(600)]
    body = f"{' '.join(names)}\n{text}\n"
    row = stored(f"{long[:480]}@x", body, f"{long[:1_000]} {text[:1_000]}", headers)
    with migrated.transaction():
        assert write(migrated, [row]) == (1, {})
    assert len(row.identifiers) >= 200_000 // 4 // 200 or has_unspaced(letters)
    assert found(migrated, "simple", "example.org") == []
    assert ids(migrated) == [row.message.message_id]


def test_quarantine_is_replaced_by_month(migrated: psycopg.Connection) -> None:
    def rows() -> list[tuple[object, ...]]:
        return migrated.execute(
            "select month, ordinal, archive_offset, archive_length, reason from quarantine"
            " order by month, ordinal"
        ).fetchall()

    replace_quarantine(migrated, ListMonth("dev", "2024-02"), "1", [QuarantineRow(0, 0, 9, "old")])
    replace_quarantine(migrated, MONTH, "1", [QuarantineRow(n, n, 5, "bad") for n in (3, 4)])
    replace_quarantine(migrated, MONTH, "2", [QuarantineRow(4, 40, 5, "worse")])
    assert rows() == [("2024-02", 0, 0, 9, "old"), ("2024-03", 4, 40, 5, "worse")]
    replace_quarantine(migrated, MONTH, "2", [])
    assert rows() == [("2024-02", 0, 0, 9, "old")]


def test_texts_are_read_some_at_a_time(
    migrated: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were not asked for yet wait in a cursor of the server."""
    load(migrated, [stored(f"{n}@example.org", ordinal=n) for n in range(9)])
    monkeypatch.setattr(messages, "TEXTS_AT_A_TIME", 2)
    with migrated.transaction():
        texts = read_texts(migrated, MONTH)
        assert next(texts).message_id == "0@example.org"
        left = migrated.execute("select count(*) from pg_cursors").fetchone()
        assert left == (1,)
        assert len([*texts]) == 8


MESSAGE: LiteralString = """
insert into messages (list, month, message_id, variant, content_hash, row_hash, sent_at,
       date_source, date_raw, subject, subject_base, from_name, from_email, reply_to, recipients,
       cc, in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers,
       flags, search)
select 'dev', month, message_id, 0, '', '', now(), 'date', '', '', '', name, address, '{}', '{}',
       '{}', '{}', '{}', '', 'plain', '', '[]', '[]', '{}', '{}', ''
  from (values ('2024-03', 'a', 'Ann', 'Ann@example.org'),
               ('2024-03', 'b', 'Bo', 'bo@example.org'),
               ('2024-03', 'c', 'BO', 'bo@example.org'),
               ('2024-04', 'd', 'Ann', 'ann@example.org')) m (month, message_id, name, address)
"""
MARCH_ANN = ("2024-03", "ann@example.org", "ann ann@example.org")
MARCH_BO = ("2024-03", "bo@example.org", "bo bo@example.org")
APRIL_ANN = ("2024-04", *MARCH_ANN[1:])


@pytest.fixture
def db(mail_dsn: str) -> Iterator[psycopg.Connection]:
    """A database in which Ann wrote in two months, and Bo twice in one."""
    with psycopg.connect(mail_dsn, autocommit=True) as connection:
        connection.execute(MESSAGE)
        show_lists(connection, EVERY_LIST)
        yield connection


@pytest.mark.parametrize(
    ("statement", "senders"),
    [
        ("select", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        ("delete from messages where message_id = 'a'", [MARCH_BO, APRIL_ANN]),
        ("delete from messages where message_id = 'b'", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        ("delete from messages where from_name ilike 'bo'", [MARCH_ANN, APRIL_ANN]),
        ("delete from messages", []),
        (
            "update messages set from_name = 'Eve' where message_id = 'd'",
            [MARCH_ANN, MARCH_BO, ("2024-04", "ann@example.org", "eve ann@example.org")],
        ),
        ("update messages set subject = 'x'", [MARCH_ANN, MARCH_BO, APRIL_ANN]),
        (
            "update messages set from_name = 'ANN' where message_id = 'a'",
            [MARCH_ANN, MARCH_BO, APRIL_ANN],
        ),
    ],
)
def test_senders_of_a_month_are_there_once(
    db: psycopg.Connection, statement: LiteralString, senders: list[tuple[str, str, str]]
) -> None:
    db.execute(statement)
    rows = db.execute("select list, month, address, person from senders order by month, person")
    assert rows.fetchall() == [("dev", *one) for one in senders]


#: Messages of a month that all change at once, each by another sender.
MANY = 200
ROWS_READ: LiteralString = """
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer from pg_stat_xact_user_tables
"""
MANY_MESSAGES: LiteralString = """
insert into messages
select list, '2024-05', message_id || i, variant, content_hash, row_hash, sent_at, date_source,
       date_raw, subject, subject_base, from_name || i, from_email, reply_to, recipients, cc,
       in_reply_to, refs, list_id, body_kind, body_text, segments, attachments, identifiers, flags,
       search
  from messages cross join generate_series(1, %s) i where message_id = 'a'
"""


@pytest.mark.parametrize("statement", [
    "update messages set from_name = from_name || 'x'", "update messages set refs = array['x']",
    "update messages set subject = 'x'", "delete from messages",
])  # fmt: skip
def test_cost_is_linear_in_changed_mail(db: psycopg.Connection, statement: LiteralString) -> None:
    db.execute("update messages set from_name = from_name || 'x', refs = array['y']")
    db.execute(MANY_MESSAGES, (MANY,))
    with db.transaction():
        db.execute(statement + " where month = '2024-05'")
        [(read,)] = db.execute(ROWS_READ).fetchall()
    assert MANY <= read < 20 * MANY


@pytest.mark.parametrize(("name", "asked"), [
    ("Björn Müller", ["bjorn", "Björn", "BJO\u0308RN", "muller, bjorn", "Mu\u0308ller"]),
    ("Conan O’Brien", ["O'Brien", "o’brien", "conan o'brien"]),
    ("Conan O'Brien", ["O’Brien", "oʼbrien"]),
    ("Ｔｏｍ Lane", ["tom", "ｌａｎｅ"]),
    ("Łukasz Ørsted", ["lukasz", "orsted", "Łukasz"]),
    ("Алёна Й", ["алена", "алёна"]),
    ("백 영", ["백"]),
])  # fmt: skip
def test_person_is_found_in_any_spelling(
    db: psycopg.Connection, name: str, asked: list[str]
) -> None:
    db.execute("update messages set from_name = %s where message_id = 'a'", [name])
    for sender in asked:
        words = sender.replace(",", " ").split()
        values = {"sender": sender, "words": words, "longest": max(words, key=len), "most": 9}
        for query in ("senders", "senders_by_name"):
            found = db.execute(statement("search", query), {**values, **HIDDEN}).fetchall()
            assert found == [("ann@example.org",)], (sender, query)
