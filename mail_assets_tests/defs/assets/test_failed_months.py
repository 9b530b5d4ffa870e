"""A month fails in a run of many: the others continue, and the run fails at the end."""

from collections.abc import Callable

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from mail_assets.defs.definitions import CHECKS
from mail_assets.defs.failures import MONTHS_MADE, read_failures
from mail_assets.defs.partitions import asset_key
from mail_assets_tests.defs.dagster_world import (
    CHAIN,
    OF_ALL_MAIL,
    DagsterWorld,
    failure,
    key,
    range_tags,
)
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, mail

MONTHS = (MARCH, APRIL, MAY)


@pytest.fixture
def spring(world: DagsterWorld) -> DagsterWorld:
    """A world with one message in each of three months."""
    for number, month in enumerate(MONTHS):
        world.archive(month, mail(f"m{number}"))
    return world


def break_archive(world: DagsterWorld) -> None:
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")


def break_balance(world: DagsterWorld) -> None:
    """Make the check accounted_for find one message too few."""
    with world.connect() as connection:
        connection.execute(
            "create function miscount() returns trigger language plpgsql as"
            " $$ begin new.found := new.found + 1; return new; end $$;"
            "create trigger miscounted before insert or update on mbox_archives"
            " for each row when (new.month = '2024-04') execute function miscount()"
        )


Break = Callable[[DagsterWorld], None]


@pytest.mark.parametrize(
    ("spoil", "first_without", "says"),
    [
        (break_archive, "mbox_archives", "it is an HTML page"),
        (break_balance, "words", "check accounted_for failed: "),
    ],
)
def test_good_months_go_on_to_the_indexes(
    spring: DagsterWorld, spoil: Break, first_without: str, says: str
) -> None:
    spoil(spring)
    result = spring.range(key(MARCH), key(MAY))
    assert not result.success
    whole = CHAIN[: CHAIN.index(first_without)]
    for asset in CHAIN:
        wanted = {key(month) for month in MONTHS if asset in whole or month != APRIL}
        assert spring.instance.get_materialized_partitions(asset_key(asset)) == wanted, asset
    [told] = read_failures(spring.instance, result.run_id)
    assert told.subject == f"{HARBOR} {APRIL}"
    assert says in told.reason
    assert APRIL not in told.reason.replace(str(spring.home), "").replace(f"{APRIL}.mbox", "")
    assert spring.index.count() == 2
    assert {check.check_name for check in result.get_asset_check_evaluations()} >= {
        *("keys_agree", "forgotten_stay_forgotten", "one_fingerprint"),
    }


def test_step_fails_if_it_makes_no_month(spring: DagsterWorld) -> None:
    break_archive(spring)
    result = spring.month(APRIL)
    [event] = result.get_step_failure_events()
    assert event.step_key == "mail__mbox_archives"
    assert spring.recorded(result, "messages") == {}


def test_step_fails_itself_if_its_check_does_not_run(spring: DagsterWorld) -> None:
    break_archive(spring)
    assets = [asset_key(name) for name in CHAIN[:2]]
    job = dg.define_asset_job("bare", selection=dg.AssetSelection.assets(*assets).without_checks())
    defs = dg.Definitions.merge(spring.defs, dg.Definitions(jobs=[job]))
    result = defs.resolve_job_def("bare").execute_in_process(
        instance=spring.instance,
        tags=range_tags(key(MARCH), key(MAY)),
        raise_on_error=False,
    )
    [event] = result.get_step_failure_events()
    assert event.step_key == "mail__mbox_archives"
    assert spring.recorded(result, "messages") == {}


def test_months_of_other_lists_go_on_in_a_rectangle(spring: DagsterWorld) -> None:
    spring.archive(APRIL, mail("p"), list_name=PIER)
    break_archive(spring)
    result = spring.range(key(APRIL), key(APRIL, PIER))
    assert not result.success
    vectors = spring.instance.get_materialized_partitions(asset_key("vectors"))
    assert vectors == {key(APRIL, PIER)}


def test_failed_month_is_reported_until_it_is_made(
    spring: DagsterWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    break_archive(spring)
    reported = failure(spring.range(key(MARCH), key(MAY)))
    months, reason, remedy = reported.description.splitlines()
    assert months == f"{HARBOR} {APRIL}"
    assert reason.endswith("open the URL")
    command = f"mail-assets backfill --list {HARBOR} --from {APRIL} --to {APRIL}"
    assert remedy == f"when that is repaired, run: {command}"
    assert "Traceback" in reported.metadata["traceback"].value
    printed = capfd.readouterr().err
    assert printed.rstrip().endswith(f"{reason}\n{remedy}")
    assert "Traceback" not in printed
    assert "Stack Trace" not in printed
    wanted = dg.AssetCheckKey(asset_key("mbox_archives"), MONTHS_MADE)
    [check] = [one for one in CHECKS if wanted in one.check_keys]
    assert not spring.check(check).passed, "a run again from its failure runs the check alone"
    spring.archive(APRIL, mail("b"), at=1)
    assert spring.month(APRIL).success
    assert spring.check(check).passed


def statuses(world: DagsterWorld) -> set[tuple[str, str]]:
    """Return (asset, month) of all partitions that the UI shows as stale."""
    graph = world.defs.get_repository_def().asset_graph
    resolver = CachingStaleStatusResolver(
        world.instance, graph, LoadingContextForTest(world.instance)
    )
    return {
        (asset, month)
        for asset in CHAIN
        for month in MONTHS
        if resolver.get_status(asset_key(asset), key(month)) != StaleStatus.FRESH
    }


def test_month_made_alone_makes_no_other_stale(spring: DagsterWorld) -> None:
    assert spring.range(key(MARCH), key(MAY)).success
    assert statuses(spring) == set()
    for asset in CHAIN:
        assert spring.month(APRIL, select=[asset]).success
        assert statuses(spring) == set(), asset
    spring.archive(APRIL, mail("m1"), mail("more"), at=1)
    assert spring.month(APRIL, select=CHAIN[:2]).success
    stale = ("words", "patches", "chunks", "vectors")
    assert statuses(spring) == {(asset, APRIL) for asset in stale}


def test_range_records_a_version_for_each_month(spring: DagsterWorld) -> None:
    result = spring.range(key(MARCH), key(MAY))
    alone = spring.month(MAY)
    for asset in OF_ALL_MAIL:
        tags = {event.partition: event.tags or {} for event in spring._events(result, asset)}
        assert len({one["dagster/data_version"] for one in tags.values()}) == len(MONTHS)
        assert tags[key(MAY)]["dagster/data_version"] == spring.version(alone, asset)
