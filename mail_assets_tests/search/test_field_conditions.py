"""Filters find mail by the text that pages show, never by masked text."""

import re
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from mail_assets.mail.message.addresses import AT_MARKS
from mail_assets.mail.message.text_addresses import ADDRESSES, MASK, SIGNS, mask_addresses
from mail_assets.postgres.statements import statement
from mail_assets.search.field_conditions import find_outside_addresses, resolve_clause
from mail_assets.search.language.expression import Condition, Field
from mail_assets_tests.mail.message.test_text_addresses import WRITTEN
from mail_assets_tests.web.test_privacy import PIECES


def strip(connection: psycopg.Connection, text: str) -> str:
    given = {"text": text, "addresses": ADDRESSES}
    statement = "select lower(regexp_replace(%(text)s, %(addresses)s, e'\\n', 'g'))"
    [(stripped,)] = connection.execute(statement, given).fetchall()
    return str(stripped)


@pytest.mark.parametrize("address", WRITTEN)
def test_address_is_taken_out_in_any_spelling(connection: psycopg.Connection, address: str) -> None:
    assert strip(connection, f"write to {address}, or not") == "write to \n, or not"


@pytest.mark.parametrize("mark", AT_MARKS)
def test_address_is_taken_out_in_pipermails_languages(
    connection: psycopg.Connection, mark: str
) -> None:
    text = f"Ana Gil <ana.gil{mark}lists.example.org> escribió"
    assert re.search(SIGNS, text.lower())
    assert strip(connection, text) == "ana gil <\n> escribió"


@pytest.mark.parametrize("subject", [
    "re: está en github.com, o a mano", "re: [patch v2 3/4] meeting at 10.30",
    "look at the manual, e.g. at www.example.org",
    "crash at startup: 2 @ 3, @override and c++ at -o2", "timeout=40ms in x86_64; user@",
    "what is new in 18.2? a.b.c at all",
])  # fmt: skip
def test_subjects_without_addresses_stay(connection: psycopg.Connection, subject: str) -> None:
    assert strip(connection, subject) == subject


@hypothesis(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([*PIECES, "q", "é", "＠", "。"]), max_size=30).map("".join), st.data()
)
def test_masked_address_is_not_found(
    connection: psycopg.Connection, text: str, data: st.DataObject
) -> None:
    masked = mask_addresses(text)
    hidden = [at for at, sign in enumerate(masked) if sign == MASK]
    if not hidden:
        return
    at = data.draw(st.sampled_from(hidden))
    start = data.draw(st.integers(max(0, at - 5), at))
    part = text[start : data.draw(st.integers(at + 1, at + 6))].lower()
    if part.strip() == part and "\n" not in part and part not in masked.lower():
        assert part not in strip(connection, text)


@hypothesis(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text("aBü@ \n.%_\\(", max_size=20),
    part=st.text("aBü .%_\\(", min_size=1, max_size=4).filter(lambda part: "  " not in part),
)
def test_part_of_a_name_is_found_outside_addresses(
    migrated: psycopg.Connection, text: str, part: str
) -> None:
    given = {"text": text.lower(), "part": part, "outside": find_outside_addresses(part)}
    query = (
        "select %(text)s ~ lower(%(outside)s),"
        r" regexp_replace(%(text)s, '\S*@\S*', '', 'g') like like_pattern(%(part)s)"
    )
    [(found, expected)] = migrated.execute(query, given).fetchall()
    assert found is expected


def test_compiling_addresses_has_no_time_limit(
    migrated: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a timeout, PostgreSQL would compile again in every search on a busy machine."""
    limits: dict[object, object] = {}
    execute = migrated.execute

    def watch(query: Any, *given: Any) -> Any:
        limits[query] = execute("show statement_timeout").fetchone()
        return execute(query, *given)

    monkeypatch.setattr(migrated, "execute", watch)
    execute("set statement_timeout = '1h'")
    compiles, finds = (
        statement("search", name) for name in ("compile_addresses", "senders_by_name")
    )
    resolve_clause(migrated, (Condition(Field("from", "ann")),), names_only=True)
    assert (limits[compiles], limits[finds]) == (("0",), ("1h",))
    del limits[compiles]
    resolve_clause(migrated, (Condition(Field("subject", "ann")),), names_only=True)
    assert compiles not in limits
