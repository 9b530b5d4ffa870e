"""A public role reads mail, threads and hits, and no address in any of them."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from psycopg import sql

from mail_assets import sql_functions as installing
from mail_assets.encoding.local_encoder import LocalEncoder
from mail_assets.mail.message.text_addresses import PATTERNS
from mail_assets.postgres.database import Database
from mail_assets.sql_functions import (
    PublicRoleError,
    PublicSchemaError,
    TableInUseError,
    install_functions,
)
from mail_assets.tables.search_vectors import compose_vector, cut_message
from mail_assets.text.identifiers import find_identifiers
from mail_assets_tests.mail.message.test_text_addresses import WRITTEN
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.sql_functions.conftest import call, vector_text

ROLE = 'anon "web" 100%'
NAME = sql.Identifier(ROLE)
FUNCTIONS = ("search_semantic", "search_fulltext", "search_hybrid", "search_messages_with_chunks")
#: Views over the tables.
VIEWS = ("thread_contents", "left_out")
#: What a message of the samples is given before the public looks at it.
ADDRESSES = ["tom.lane+pg@sss.example.pa.us", "o'hara_1@example.org", '"a name"@example.com']
TEXT = "On Monday, {0} wrote:\n> ask {1} or mailto:{2}\nzebra-42 <{0}>, ({1})\n"


@pytest.fixture(scope="module")
def reader(db: psycopg.Connection, stored: Corpus) -> Iterator[psycopg.Connection]:
    """A connection as the public role, next to mail whose texts are full of addresses."""
    text = TEXT.format(*ADDRESSES)
    cut = cut_message("", text, find_identifiers(text))
    db.execute(
        "update messages set body_text = body_text || %(text)s, subject = subject || %(one)s,"
        " from_name = %(one)s, search = search || %(vector)s::tsvector"
        " where message_id = 'names@example.es'",
        {"text": text, "one": ADDRESSES[0], "vector": compose_vector(cut, {})},
    )
    db.execute(
        "update chunks c set text = c.text || %(text)s, spans = c.spans || array["
        "length(m.body_text) - length(%(text)s), length(m.body_text)] from messages m"
        " where m.message_id = 'names@example.es' and c.message_id = m.message_id"
        " and (m.list, m.month, m.variant) = (c.list, c.month, c.variant)",
        {"text": text},
    )
    db.execute(sql.SQL("create role {} login").format(NAME))
    install_functions(db, stored.settings.languages, public=ROLE)
    with psycopg.connect(stored.settings.pg_dsn, user=ROLE, autocommit=True) as connection:
        yield connection
    install_functions(db, stored.settings.languages)
    db.execute(sql.SQL("drop owned by {0}; drop role {0}").format(NAME))


def everything(reader: psycopg.Connection, encoder: LocalEncoder) -> dict[str, str]:
    """All that the role can get out, as text."""
    vector = vector_text(encoder.encode_query("pg_catalog.pg_class heapam.c poda"))
    question = {"query_text": "zebra heapam.c", "match_count": 100}
    meaning = {"query_embedding": vector, "match_count": 100}
    asked: dict[str, dict[str, object]] = {
        "search_fulltext": {**question},
        "search_semantic": {**meaning},
        "search_hybrid": {**question, **meaning},
        "search_messages_with_chunks": {**meaning, "match_threshold": -1},
    }
    got = {
        name: str(call(reader, f"mail_public.{name}", **arguments))
        for name, arguments in asked.items()
    }
    for view in ("messages", "threads"):
        rows = reader.execute(f"select to_jsonb(v)::text from mail_public.{view} v".encode())
        got[view] = "\n".join(row[0] for row in rows)
    return got


def test_no_address_comes_out_of_any_view_or_function(
    reader: psycopg.Connection, db: psycopg.Connection, encoder: LocalEncoder
) -> None:
    got = everything(reader, encoder)
    senders = {r[0] for r in db.execute("select distinct from_email from messages").fetchall()}
    ids = {r[0] for r in db.execute("select message_id from messages").fetchall()}
    ids |= {r[0] for r in db.execute("select message_id from threads").fetchall()}
    assert len(senders) > 5
    for name, text in got.items():
        assert "names@example.es" in text, name
        assert "[address]" in text or name == "threads", name
        assert "zebra-42" in text or name in ("threads", "search_fulltext"), name
        for one in sorted(ids, key=len, reverse=True):  # ids have the form of addresses
            text = text.replace(one, "")
        assert re.findall(r"[^\s@]+@[^\s@]+", text) == [], name
        assert not any(sender in text for sender in senders), name


@pytest.mark.parametrize(
    "setting", ["standard_conforming_strings = off", "array_nulls = off", "timezone = 'Asia/Tokyo'"]
)
def test_settings_of_a_session_change_nothing(
    reader: psycopg.Connection, encoder: LocalEncoder, stored: Corpus, setting: str
) -> None:
    shown = "select mail_public.hide_addresses('jo@[192.0.2.1], \"a\nname\"@example.org')"
    vector = vector_text(encoder.encode_query("why do jobs run twice"))
    ask = {"query_text": "jobs lease heapam.c -C:pg", "query_embedding": vector}
    with psycopg.connect(stored.settings.pg_dsn, user=ROLE, autocommit=True) as session:
        session.execute(f"set {setting}".encode())
        for one in (reader, session):
            assert "jo@" not in str(one.execute(shown.encode()).fetchall())
        found = call(session, "mail_public.search_hybrid", **ask)
        assert found == call(reader, "mail_public.search_hybrid", **ask)
        assert found


def test_public_hits_are_those_of_the_owner(
    reader: psycopg.Connection, db: psycopg.Connection, encoder: LocalEncoder
) -> None:
    vector = vector_text(encoder.encode_query("why do jobs run twice"))
    arguments: dict[str, dict[str, object]] = {
        "search_fulltext": {"query_text": "jobs lease"},
        "search_semantic": {"query_embedding": vector},
        "search_hybrid": {"query_text": "jobs lease", "query_embedding": vector},
        "search_messages_with_chunks": {"query_embedding": vector},
    }
    for name in FUNCTIONS:
        mine = call(db, name, **arguments[name])
        theirs = call(reader, f"mail_public.{name}", **arguments[name])
        assert [row["message_id"] for row in theirs] == [row["message_id"] for row in mine]
        assert [*theirs[0]] == [*mine[0]]  # the same columns
        scores = {"score", "similarity", "max_similarity", "full_text_rank"}
        for row, hit in zip(theirs, mine, strict=True):
            assert {k: row[k] for k in scores & {*row}} == {k: hit[k] for k in scores & {*hit}}


@pytest.mark.parametrize("query", [*ADDRESSES, f'"{ADDRESSES[0]}"', f"lease -{ADDRESSES[0]}"])
def test_asking_for_an_address_reveals_nothing(
    reader: psycopg.Connection, db: psycopg.Connection, query: str
) -> None:
    if "lease" not in query:
        assert call(db, "search_fulltext", query_text=query)  # the owner finds it
    other = query.replace(ADDRESSES[0], "nobody@nowhere.example")
    for address in ADDRESSES[1:]:
        other = other.replace(address, "nobody@nowhere.example")
    ask = "mail_public.search_fulltext"
    assert call(reader, ask, query_text=query) == call(reader, ask, query_text=other)


def tables(db: psycopg.Connection) -> list[str]:
    rows = db.execute(
        "select oid::regclass::text from pg_class where relkind = 'r'"
        " and relnamespace in ('public'::regnamespace, 'vectors'::regnamespace)"
    ).fetchall()
    return [name for (name,) in rows]


def test_tables_are_not_read_or_written(reader: psycopg.Connection, db: psycopg.Connection) -> None:
    names = tables(db)
    assert {"messages", "chunks", "removals", "lists"} < {*names}
    for name in names:
        for statement in ("select from {}", "delete from {}", "truncate {}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement.format(name).encode())
    for function in ("search_fulltext('lease')", "nearest_chunks('[1]', 1, null, null, null)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(f"select * from {function}".encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute("create table mail_public.mine ()")


def test_every_table_of_the_database_has_row_level_security(
    reader: psycopg.Connection, db: psycopg.Connection
) -> None:
    unprotected = db.execute(
        "select relname from pg_class where relkind = 'r' and not relrowsecurity"
        " and relnamespace = 'public'::regnamespace"
    ).fetchall()
    assert unprotected == []


def test_grant_made_later_by_mistake_shows_no_row(
    reader: psycopg.Connection, db: psycopg.Connection
) -> None:
    db.execute(sql.SQL("grant select on all tables in schema public to {}").format(NAME))
    try:
        for name in (*tables(db), *VIEWS):
            if not name.startswith("vectors."):
                assert reader.execute(f"select from {name}".encode()).fetchall() == [], name
    finally:
        db.execute(sql.SQL("revoke all on all tables in schema public from {}").format(NAME))


def test_grants_on_views_of_the_tables_are_taken_back(
    reader: psycopg.Connection, db: psycopg.Connection, stored: Corpus
) -> None:
    db.execute(sql.SQL("grant select on thread_contents, left_out to {}").format(NAME))
    install_functions(db, stored.settings.languages, public=ROLE)
    for name in VIEWS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(f"select from {name}".encode())


def test_reader_sees_only_public_text(reader: psycopg.Connection, db: psycopg.Connection) -> None:
    """A cheap function in a condition is called before others; it gets no raw text either."""
    reader.execute(
        "create function pg_temp.tell(text) returns boolean language plpgsql cost 0.0001 as"
        " $$ begin if $1 ~ 'tom\\.lane' then raise 'seen: %', $1; end if; return true; end $$"
    )
    rows = reader.execute(
        "select count(*) from mail_public.messages where pg_temp.tell(body_text)"
        " and pg_temp.tell(subject) and pg_temp.tell(from_name)"
    ).fetchone()
    assert rows == db.execute("select count(*) from messages").fetchone()


def test_message_is_found_by_its_id_through_the_index(reader: psycopg.Connection) -> None:
    with reader.transaction():
        reader.execute("set local enable_seqscan = off")  # there are few rows
        rows = reader.execute(
            "explain select * from mail_public.messages where message_id = 'names@example.es'"
        ).fetchall()
    assert "messages_message_id" in str(rows)


@pytest.mark.parametrize("address", WRITTEN)
def test_address_is_hidden_in_every_spelling(
    db: psycopg.Connection, reader: psycopg.Connection, address: str
) -> None:
    text = f"case begins\n{address}\nand ends"
    [row] = db.execute("select mail_public.hide_addresses(%s)", [text]).fetchall()
    assert row == ("case begins\n[address]\nand ends",)


def test_pattern_has_only_the_forms_of_its_text(
    db: psycopg.Connection, reader: psycopg.Connection
) -> None:
    """Each match builds the automaton again, so a text of one form must not pay for all."""
    text = "jo at x dot org " * 2_000
    row = db.execute(
        "select mail_public.address_pattern(%(text)s), mail_public.hide_addresses(%(text)s)",
        {"text": text},
    ).fetchone()
    assert row
    pattern, hidden = row
    assert sum(form in pattern for form in PATTERNS.forms) == 2, "certain, or of a known domain"
    assert PATTERNS.listed not in pattern
    assert hidden == "[address] " * 2_000


def test_blank_lines_around_hidden_addresses_stay(
    db: psycopg.Connection, reader: psycopg.Connection
) -> None:
    text = "\n\n%s\n\n\n\nx\n\n\n%s\n\n"
    shown = "select mail_public.hide_addresses(%s)"
    [row] = db.execute(shown, [text % ("jo at example dot org", "jo (at) example.org")]).fetchall()
    assert row == (text % ("[address]", "[address]"),)
    assert db.execute(shown, [""]).fetchall() == [("",)]
    assert db.execute(shown, [None]).fetchall() == [(None,)]


PIECES = ["jo", "example.org", "@", "@@", "\\@", '"', "a b", " ", "\n", ".", "@[192.0.2.1]", "é"]


@hypothesis(max_examples=100)
@given(
    st.lists(st.sampled_from(PIECES), min_size=100, max_size=400).map("".join),
    st.lists(st.integers(1, 1_200), max_size=20),
)
def test_parts_of_a_text_hide_what_the_whole_hides(
    db: psycopg.Connection, reader: psycopg.Connection, text: str, borders: list[int]
) -> None:
    edges = [0, *sorted({one for one in borders if one < len(text)}), len(text)]
    [whole] = db.execute("select mail_public.hide_addresses(%s)", [text]).fetchall()
    rows = db.execute(
        "select mail_public.hide_addresses_between(%s, a, b)"
        " from unnest(%s::int[], %s::int[]) with ordinality as t (a, b, n) order by n",
        [text, edges[:-1], edges[1:]],
    ).fetchall()
    parts = "".join(part for (part,) in rows)
    # an address that is cut is named in each of its parts
    assert re.sub(r"(\[address])+", "#", parts) == re.sub(r"(\[address])+", "#", whole[0])


@pytest.mark.parametrize("size", [1, 8, 30])
def test_address_cut_by_a_chunk_is_hidden(
    reader: psycopg.Connection, db: psycopg.Connection, encoder: LocalEncoder, size: int
) -> None:
    """The chunks of one message are cut in the middle of its first address."""
    vector = vector_text(encoder.encode_query("pg_catalog.pg_class heapam.c poda"))
    cut = """
        update chunks c
           set spans = array[at.first, at.first + %(size)s],
               text = substr(m.body_text, at.first + 1, %(size)s)
          from messages m
         cross join lateral (select strpos(m.body_text, 'lane+pg@') as first) at
         where m.message_id = 'names@example.es' and c.message_id = m.message_id
           and (m.list, m.month, m.variant) = (c.list, c.month, c.variant)"""
    ask = {"query_embedding": vector, "match_count": 100}
    with db.transaction(force_rollback=True):
        db.execute(cut.encode(), {"size": size})
        texts = [
            *(row["chunk"] for row in call(db, "mail_public.search_semantic", **ask)),
            *(
                chunk["text"]
                for row in call(db, "mail_public.search_messages_with_chunks", **ask,
                                match_threshold=-1)
                for chunk in row["chunks"]
            ),
        ]  # fmt: skip
    assert len([text for text in texts if text.startswith("[address]")]) >= 2
    assert not [text for text in texts if text.startswith(("ane", "lane"))]


def test_other_text_stays(db: psycopg.Connection, reader: psycopg.Connection) -> None:
    text = "@@ -1,2 +3,4 @@ foo()\n@Override x @ y, at work. A date, a@ b"
    assert db.execute("select mail_public.hide_addresses(%s)", [text]).fetchall() == [(text,)]


def test_long_run_without_address_stays(db: psycopg.Connection, reader: psycopg.Connection) -> None:
    text = "QUJD" * 250_000  # a walk back from each character would never end
    assert db.execute("select mail_public.hide_addresses(%s)", [text]).fetchall() == [(text,)]


def test_address_in_a_query_is_no_word_of_it(reader: psycopg.Connection) -> None:
    found = call(reader, "mail_public.search_fulltext", query_text="lease")
    assert found
    for query in ("tom@example.org lease", "lease tom@example.org", "<tom@example.org> lease"):
        assert call(reader, "mail_public.search_fulltext", query_text=query) == found
    assert call(reader, "mail_public.search_fulltext", query_text="tom@example.org") == []


def test_long_query_is_refused_before_it_is_read(reader: psycopg.Connection) -> None:
    query = "tom@example.org " * 1_000 + "lease"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="has 16005 characters"):
        call(reader, "mail_public.search_fulltext", query_text=query)


@pytest.mark.parametrize(
    ("role", "reason"),
    [("nobody there", "there is no role nobody there"), ("postgres", "can already read all mail")],
)
def test_role_that_cannot_be_the_public_is_refused(
    db: psycopg.Connection, stored: Corpus, role: str, reason: str
) -> None:
    with pytest.raises(PublicRoleError, match=reason):
        install_functions(db, stored.settings.languages, public=role)


def test_installing_without_a_public_ends_it(
    reader: psycopg.Connection, db: psycopg.Connection, stored: Corpus
) -> None:
    assert call(reader, "mail_public.search_fulltext", query_text="lease")
    install_functions(db, stored.settings.languages)
    with pytest.raises((psycopg.errors.UndefinedFunction, psycopg.errors.InsufficientPrivilege)):
        call(reader, "mail_public.search_fulltext", query_text="lease")
    install_functions(db, stored.settings.languages, public=ROLE)


@pytest.fixture
def busy(stored: Corpus) -> Iterator[psycopg.Connection]:
    """A connection that has written messages and goes on, as a load does."""
    dsn = stored.settings.pg_dsn
    with psycopg.connect(dsn, application_name="mail_assets/messages") as connection:
        connection.execute("update messages set flags = flags where false")
        yield connection


def test_installing_again_does_not_wait_for_a_load(
    reader: psycopg.Connection,
    db: psycopg.Connection,
    busy: psycopg.Connection,
    stored: Corpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installing, "TRIES", 1)
    db.execute("set lock_timeout = '20s'")
    install_functions(db, stored.settings.languages, public=ROLE)
    db.execute("reset lock_timeout")
    assert call(reader, "mail_public.search_fulltext", query_text="lease")


def is_closed(db: psycopg.Connection) -> bool:
    [row] = db.execute("select relrowsecurity from pg_class where oid = 'messages'::regclass")
    return bool(row[0])


def test_table_in_use_is_waited_for_with_pauses(
    reader: psycopg.Connection,
    db: psycopg.Connection,
    busy: psycopg.Connection,
    stored: Corpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy.rollback()
    db.execute("alter table messages disable row level security")
    busy.execute("update messages set flags = flags where false")
    paused = []

    def rest(seconds: float) -> None:
        assert not is_closed(db)
        assert reader.execute("select 1 from mail_public.messages limit 1").fetchall()
        paused.append(seconds)
        if len(paused) == 2:
            busy.commit()

    monkeypatch.setattr(installing, "sleep", rest)
    db.execute("set lock_timeout = '20s'")
    install_functions(db, stored.settings.languages, public=ROLE)
    db.execute("reset lock_timeout")
    assert paused == [installing.PAUSE] * 2
    assert is_closed(db)


def test_user_of_a_busy_table_is_named(
    reader: psycopg.Connection,
    db: psycopg.Connection,
    stored: Corpus,
    busy: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installing, "TRIES", 1)
    busy.rollback()
    db.execute("alter table messages disable row level security")
    busy.execute("update messages set flags = flags where false")
    who = rf"mail_assets/messages \(process {busy.info.backend_pid}, for 00:00:\d\d: messages[,)]"
    db.execute("set lock_timeout = '20s'")
    with pytest.raises(TableInUseError, match=who):
        install_functions(db, stored.settings.languages, public=ROLE)
    db.execute("reset lock_timeout")
    assert call(reader, "mail_public.search_fulltext", query_text="lease")
    busy.rollback()
    install_functions(db, stored.settings.languages, public=ROLE)
    assert is_closed(db)


def test_public_of_another_installation_stays(
    reader: psycopg.Connection, postgres_dsn: str, tmp_path: Path
) -> None:
    shown = "select to_regclass('mail_public.messages') is not null"
    with ExitStack() as opened:
        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            connection.execute("create schema a; create schema b; create schema extensions")
            connection.execute("create extension pg_trgm schema extensions")
        dsns = [f"{postgres_dsn}&options=-csearch_path%3D{name},extensions" for name in "ab"]
        first, second = (
            opened.enter_context(Database(tmp_path, dsn).connect("test")) for dsn in dsns
        )
        install = partial(install_functions, languages={"harbor": "english"}, vectors=False)
        install(first, public=ROLE)
        with pytest.raises(PublicSchemaError, match="schema a, another installation"):
            install(second, public=ROLE)
        install(second)
        assert first.execute(shown).fetchone() == (True,)
        install(first)
        assert first.execute(shown).fetchone() == (False,)
        install(second, public=ROLE)
        assert first.execute(shown).fetchone() == (True,)
        second.execute(sql.SQL("drop owned by {}").format(NAME))
