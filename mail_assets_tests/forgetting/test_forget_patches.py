"""Forgetting a mail with a patch: out of series, keys, states and what mails say of it."""

from collections.abc import Iterator

import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.tables.damage import find_damaged_links, find_damaged_series
from mail_assets_tests.crane import Crane
from mail_assets_tests.kept_worlds import KeptWorlds
from mail_assets_tests.world import MARCH, World, mail

TABLES = ("patches", "patch_series", "patch_keys", "patch_states", "patch_outcomes", "commit_links")


def fill(world: World) -> None:
    """A first version, a second one that became a commit, and a maintainer's word on it."""
    crane = Crane(world)
    sha = crane.commit()
    world.archive(
        MARCH,
        crane.mail("first", sha),
        crane.mail("second", sha, "[PATCH v2] crane: know the limit"),
        mail("word", "Applied, thanks.", references="<second@example.org>", sender="bo@x.example"),
    )
    world.chain(last="patches")
    crane.read()
    world.threads()
    crane.link()
    world.series()


@pytest.fixture
def filled(kept_worlds: KeptWorlds) -> Iterator[World]:
    with kept_worlds.filled(fill) as world:
        yield world


def rows(world: World) -> dict[str, int]:
    return {table: len(world.rows(table)) for table in TABLES}


def faults(world: World) -> list[str]:
    with world.connect() as connection:
        found = [*find_damaged_series(connection), *find_damaged_links(connection)]
    return [one.problem for one in found]


@pytest.mark.parametrize(("names", "left"), [
    (("first",), {"patches": 1, "patch_series": 1, "patch_outcomes": 1, "commit_links": 1}),
    (("second",), {"patches": 1, "patch_series": 1, "patch_outcomes": 1}),
    (("word",), {"patches": 2, "patch_series": 2, "commit_links": 2}),
    (("first", "second", "word"), {}),
])  # fmt: skip
def test_forgotten_patch_leaves_no_row_and_no_key(
    filled: World, names: tuple[str, ...], left: dict[str, int]
) -> None:
    before = rows(filled)
    assert all(before.values())
    ids = {f"{name}@example.org" for name in names}
    filled.forget(ForgetRequest(ids, (), "asked to", "the postmaster"))
    after = rows(filled)
    assert {name: after[name] for name in left} == left
    refs = "ref not in (select ref from patch_series)"
    assert filled.rows("patch_keys", where=refs) == []
    assert not ids & {one for (one,) in filled.rows("patch_states", "message_id")}
    assert faults(filled) == []
    filled.series()
    assert {name: rows(filled)[name] for name in left} == left
    if not left:
        assert not any(rows(filled).values())
