"""Damaged commits, series and links are found, and made again by the usual run."""

from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.tables.damage import find_damaged_links, find_damaged_rows, find_damaged_series
from mail_assets_tests.crane import COMMITTED, NEW, Crane
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail

SERIES = {
    "a version is lost": "delete from patch_series where previous_id is not null",
    "all are lost": "delete from patch_series",
    "a wrong version": "update patch_series set previous_id = null, evidence = '{}'"
    " where previous_id is not null",
    "another series": "update patch_series set series_id = message_id",
    "a wrong state": "update patch_series set state = 'applied'",
    "a reason that is gone": "update patch_series set reason_id = 'gone@example.org'",
    "a foreign row": "insert into patch_series select 'x', 0, 7, list, month, 0, 'x', 0, 0, null,"
    " '{}', false, false, false, true, 'open', null, null, null, '{}' from patch_series"
    " limit 1",
    "keys of a patch are lost": "delete from patch_keys"
    " where ref = (select min(ref) from patch_keys)",
    "foreign keys": "insert into patch_keys values (7, 0, 7, false)",
    "a foreign statement": "insert into patch_outcomes select 'x', 0, 'applied', 0, 1, '{}', '',"
    " '{}', false, true, '', '', now(), '{}'",
    "states are lost": "delete from patch_states",
    "a foreign state": "insert into patch_states values ('open', 'x', 'x', '{x}')",
    "states of other lists": "update patch_states set lists = '{}'",
    "a wrong digest": "update partitions set digest = '7' where asset = 'patch_series'",
    "wrong figures": "update partitions set counts = counts || '{\"open\": 7}'"
    " where asset = 'patch_series'",
    "no record": "delete from partitions where asset = 'patch_series'",
}
LINKS = {
    "a version is lost": "delete from commit_links where kind = 'version'",
    "all are lost": "delete from commit_links",
    "other evidence": "update commit_links set evidence = '{}' where kind = 'version'",
    "another order": "update commit_links set place = 1 - place",
    "another mail": "update commit_links set message_id = 'v3@example.org' where place = 1",
    "a removed mail": "insert into commit_links select repository, sha, 'gone@example.org',"
    " 'discussion', 9, '{}' from commits limit 1",
    "a commit that is gone": "insert into commit_links"
    " values ('crane', 'x', 'v1@example.org', 'discussion', 9, '{}')",
    "figures of months are lost": "delete from commit_link_months",
    "figures of months are wrong": "update commit_link_months"
    " set counts = counts || '{\"linked\": 7}'",
    "a month has no figures": "update commit_link_months set counts = '{}'",
    "a foreign month": "insert into commit_link_months"
    " select list, '1999-01', counts, digest from commit_link_months",
    "a wrong digest": "update partitions set digest = '7' where asset = 'commit_links'",
}
COMMITS = {
    "a commit is lost": "delete from commits where subject = 'first'",
    "another subject": "update commits set subject = 'other' where subject = 'first'",
    "other lines": "update commits set line_digests = '{7}' where subject = 'first'",
    "a foreign commit": "insert into commits select list, month, repository, 'x', parents,"
    " author_name, author_email, authored_at, committer_name, committer_email, committed_at,"
    " subject, title_key, body, trailers, named_mails, picked_from, reverts, files, added, removed,"
    " patch_id, line_digests, flags from commits limit 1",
}

ARCHIVES = {
    name: f"update mbox_archives set {name} = {value}"
    for name, value in (
        *(("source", "'x'"), ("version", "'x'"), ("found", "7"), ("content_sha256", "'x'")),
        *(("dialect", "'pipermail'"), ("found_dialect", "'x'"), ("list_id", "'x.example.org'")),
        *(("fetched_at", "'2001-01-01'"), ("checksum", "7")),
    )
}
ENTRIES = {
    name: f"update archive_entries set {name} = {value}"
    for name, value in (
        *(("outline", "'x'"), ("ending", "'x'"), ("digest", "'x'"), ("archive_length", "7")),
        *(("content_hash", "'x'"), ("checksum", "7")),
    )
}


@pytest.fixture
def crane(world: World) -> Crane:
    """Two versions of a patch, another, and a commit that is linked to the versions."""
    crane = Crane(world)
    sha = crane.commit()
    second = crane.mail("v2", sha, "[PATCH v2] crane: know the limit").replace(
        b"04 Mar 2024 09", b"04 Mar 2024 10"
    )
    other = crane.mail("v3", sha, "[PATCH] pier: swim").replace(b"limit_of_crane", b"lake")
    world.load(crane.mail("v1", sha), second, other, last="patches")
    crane.follow()
    world.series()
    assert find(world) == set()
    return crane


def find(world: World) -> set[str]:
    with world.connect() as connection:
        found = [
            *find_damaged_rows(connection, HARBOR),
            *find_damaged_series(connection),
            *find_damaged_links(connection),
        ]
    return {one.asset for one in found}


def damage(world: World, statement: str) -> None:
    """Run a statement that no trigger notices."""
    with psycopg.connect(world.dsn) as connection:
        connection.execute("set local session_replication_role = replica")
        connection.execute(statement.encode())


def test_links_of_a_month_that_has_lost_its_commits_are_whole(crane: Crane) -> None:
    crane.read(APRIL)
    assert crane.world.rows("partitions", "month", "asset = 'commits'") == [("2024-03",)]
    crane.made.commit({"crane.c": NEW}, "later", committed=COMMITTED + 30 * 86_400, parents=[])
    for month in (MARCH, APRIL):
        crane.read(month)
    for rebuild in (False, True):
        crane.link(rebuild=rebuild)
        assert find(crane.world) == set()


def check_mended(
    world: World, asset: str, statement: str, mend: Callable[[], object], *tables: tuple[str, ...]
) -> None:
    """Check that damage is found in one asset, and that its rows are the same after a repair."""
    before = [world.rows(*table) for table in tables]
    damage(world, statement)
    assert find(world) == {asset}
    mend()
    assert find(world) == set()
    assert [world.rows(*table) for table in tables] == before


@pytest.mark.parametrize("what", SERIES)
def test_damaged_series_are_found_and_mended(crane: Crane, what: str) -> None:
    mend = partial(crane.world.series, rebuild=True)
    tables = ("patch_series",), ("patch_states",)
    check_mended(crane.world, "patch_series", SERIES[what], mend, *tables)


@pytest.mark.parametrize("what", LINKS)
def test_damaged_links_are_found_and_mended(crane: Crane, what: str) -> None:
    mend = partial(crane.link, rebuild=True)
    check_mended(crane.world, "commit_links", LINKS[what], mend, ("commit_links",))


@pytest.mark.parametrize("what", ARCHIVES)
def test_altered_archives_are_found_and_mended(world: World, what: str) -> None:
    world.load(mail("one"), mail("two"))
    columns = "to_jsonb(mbox_archives) - '{fetched_at,checksum}'::text[]"
    mend = partial(world.archives, rebuild=True)
    check_mended(world, "mbox_archives", ARCHIVES[what], mend, ("mbox_archives", columns))


@pytest.mark.parametrize("what", ENTRIES)
def test_altered_entries_are_found_and_mended(world: World, what: str) -> None:
    world.load(mail("one"), mail("two"))
    mend = partial(world.messages, rebuild=True)
    check_mended(world, "messages", ENTRIES[what], mend, ("archive_entries",))


def test_forgotten_mail_leaves_no_altered_entries(world: World) -> None:
    world.load(mail("one"), mail("two"))
    world.forget(ForgetRequest(["two@example.org"], (), "asked to", "the postmaster"))
    assert find(world) == set()


@pytest.mark.parametrize("what", COMMITS)
def test_damaged_commits_are_found_and_mended(crane: Crane, what: str) -> None:
    world = crane.world
    before = world.rows("commits")
    damage(world, COMMITS[what])
    assert "commits" in find(world)
    crane.read(rebuild=True)
    crane.link()
    assert find(world) == set()
    assert world.rows("commits") == before


@pytest.mark.parametrize("step", ["patches", "commits", "messages"])
def test_what_waits_for_a_run_is_no_damage(crane: Crane, step: str) -> None:
    world = crane.world
    damage(world, "delete from commit_links")
    if step == "commits":
        crane.made.commit({"a": b"1\n"}, "later", committed=1_709_800_000)
        crane.read()
    else:
        world.archive("2024-03", crane.mail("v1", "main"), at=1)
        world.archives(allow_loss=True)
        world.messages()
        if step == "patches":
            world.patches()
    assert "commit_links" not in find(world)
