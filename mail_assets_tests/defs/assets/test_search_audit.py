"""The asset `search_audit`: takes over what was served, and shows it."""

import datetime as dt
from typing import Any

from mail_assets.defs.partitions import asset_key
from mail_assets.tables.search_audit import SearchKind, add_searches
from mail_assets_tests.defs.dagster_world import DagsterWorld


def materialize(world: DagsterWorld) -> dict[str, Any]:
    """Return the metadata of a run of the job."""
    job = world.defs.resolve_job_def("count_searches")
    assert job.execute_in_process(instance=world.instance).success
    event = world.instance.get_latest_materialization_event(asset_key("search_audit"))
    assert event
    assert event.asset_materialization
    return {name: one.value for name, one in event.asset_materialization.metadata.items()}


def test_what_was_served_is_taken_over_and_shown(world: DagsterWorld) -> None:
    now = dt.datetime.now(dt.UTC).replace(minute=0, second=0, microsecond=0)
    page = SearchKind(now, "page", "hybrid", (), (), 10, 50, 200)
    old = page._replace(hour=now - dt.timedelta(days=40))
    with world.connect() as connection:
        empty = materialize(world)
        add_searches(connection, {page: 6, page._replace(hits=0): 2, old: 5})
        add_searches(connection, {page._replace(surface="mcp", status=503): 1})
    assert (empty["searches"], empty["changed"]) == (0, 0)
    assert not {"p50_ms", "nothing_found"} & empty.keys()
    shown = materialize(world)
    assert {
        name: shown[name] for name in ("searches", "errors", "refused", "p50_ms", "p95_ms")
    } == {
        "searches": 9,
        "errors": 1,
        "refused": 0,
        "p50_ms": 50,
        "p95_ms": 50,
    }
    assert (shown["nothing_found"], shown["changed"]) == (0.25, 4)
    for surface in ("mcp", "page"):
        assert f"'of': '{surface}'" in repr(shown["surfaces"])
    again = materialize(world)
    assert (again["searches"], again["changed"]) == (9, 0)
