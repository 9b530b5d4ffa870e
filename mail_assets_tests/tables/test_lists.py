"""Lists that hide nothing have no row."""

import psycopg
import pytest

from mail_assets.tables.lists import record_lists
from mail_assets_tests.tables.rows import MONTH, load, stored


@pytest.mark.parametrize(("has_mail", "left"), [(True, [(MONTH.list_name, False)]), (False, [])])
def test_a_list_that_lists_toml_no_longer_names_is_kept_for_its_mail(
    migrated: psycopg.Connection, has_mail: bool, left: list[tuple[str, bool]]
) -> None:
    record_lists(migrated, {MONTH.list_name: "english"})
    if has_mail:
        load(migrated, [stored("1@example.org", "One.\n")])
    for _ in range(2):
        record_lists(migrated, {})
    assert migrated.execute("select list, published from lists").fetchall() == left
