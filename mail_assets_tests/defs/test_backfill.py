"""Filling lists from the command line: which months, in which runs, and the account of it."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.defs.backfill import (
    Report,
    backfill_lists,
    calendar_year_ranges,
    months_to_fill,
    report_lines,
)
from mail_assets.month import ListMonth
from mail_assets_tests.defs.dagster_world import DagsterWorld, dagster_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, mail

JUNE = "2024-06"


@pytest.fixture
def world(
    tmp_path: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """An empty world whose ephemeral instance takes the place of DAGSTER_HOME's."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    with dagster_world(tmp_path, postgres_dsn, tmp_path / "models", monkeypatch) as made:
        monkeypatch.setattr(dg.DagsterInstance, "get", lambda: nullcontext(made.instance))
        yield made


def fill(
    world: DagsterWorld, *lists: str, first: str | None = None, last: str | None = None
) -> Report:
    names = lists or (HARBOR, PIER)
    return backfill_lists(
        world.settings(), names, first, last, allow_loss=False, say=world.said.append
    )


def harbor_months(*months: str) -> list[ListMonth]:
    return [ListMonth(HARBOR, month) for month in months]


def test_months_are_those_of_the_source_and_those_we_have(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a")).unlink()
    world.archive(MARCH, mail("a"))
    world.archives(MARCH)
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").unlink()
    world.archive(MAY, mail("b"))
    world.archive(JUNE, mail("c"))
    for month in ("2023-12", "2098-01"):
        world.archive(month, mail("x"))
    settings = world.settings()
    assert months_to_fill(settings, HARBOR, None, None) == harbor_months(MARCH, MAY, JUNE)
    assert months_to_fill(settings, HARBOR, APRIL, MAY) == harbor_months(MAY)
    assert months_to_fill(settings, PIER, None, None) == []
    early = replace(settings, first_month="2023-01")
    assert months_to_fill(early, HARBOR, None, MARCH) == harbor_months("2023-12", MARCH)


@pytest.mark.parametrize(
    ("months", "runs"),
    [
        ([], []),
        (["2024-03"], [("2024-03", "2024-03")]),
        (["2024-11", "2024-02", "2025-01"], [("2024-02", "2024-11"), ("2025-01", "2025-01")]),
        (["2023-12", "2024-01"], [("2023-12", "2023-12"), ("2024-01", "2024-01")]),
    ],
)
def test_a_run_is_a_calendar_year(months: list[str], runs: list[tuple[str, str]]) -> None:
    expected = [(ListMonth(HARBOR, first), ListMonth(HARBOR, last)) for first, last in runs]
    assert calendar_year_ranges(harbor_months(*months)) == expected


def test_a_backfill_fills_gaps_adds_up_and_then_has_nothing_to_do(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("a"))
    world.archive(MAY, mail("c", references="<a@example.org>"))
    world.archive(MARCH, mail("a"), list_name=PIER)
    report = fill(world)
    assert report.failed == {}
    assert report.done == [
        *(ListMonth(HARBOR, month) for month in (MARCH, APRIL, MAY)),
        ListMonth(PIER, MARCH),
    ]
    assert world.said == [f"{HARBOR} {MARCH} to {MAY}", f"{PIER} {MARCH} to {MARCH}"]
    figures = report.figures
    assert figures["mbox_archives"]["found"] == 5
    assert figures["mbox_archives"]["fetched"] == 3
    messages = figures["messages"]
    assert (messages["stored"], messages["duplicates"], messages["quarantined"]) == (4, 1, 0)
    assert messages["written"] == len(world.rows("messages")) == 4
    assert figures["chunks"]["chunks"] == len(world.rows("chunks")) == 4
    assert (figures["embeddings"]["encoded"], figures["embeddings"]["reused"]) == (3, 1)
    assert figures["vectors"]["chunks"] == figures["vectors"]["written"] == world.index.count()
    assert report.threads == 2
    assert report.changed
    assert next(report_lines(report)) == "4 months materialized, 0 failed"
    before = world.writes()
    again = fill(world)
    assert world.writes() == before
    assert not again.changed
    assert next(report_lines(again)) == "4 months: nothing changed"
    assert again.figures["messages"]["stored"] == 4


def test_a_month_that_cannot_be_made_fails_alone(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").write_bytes(b"<html>please log in</html>")
    world.archive(MAY, mail("b"))
    report = fill(world, HARBOR)
    assert report.done == [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, MAY)]
    assert [*report.failed] == [f"{HARBOR} {APRIL}"]
    assert f"{HARBOR} {APRIL}: " in report.failed[f"{HARBOR} {APRIL}"]
    assert report.figures["mbox_archives"]["fetched"] == 2, "by the run of the whole year"
    assert report.figures["mbox_archives"]["found"] == 2
    assert report.figures["vectors"]["written"] == 2
    assert report.threads == 2
    assert next(report_lines(report)) == "2 months materialized, 1 failed"


def test_a_blocking_check_fails_a_month_by_its_name(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"))
    monkeypatch.setattr("mail_assets.defs.checks.chunks.count_wrong_spans", lambda *_: 3)
    report = fill(world, HARBOR)
    assert report.done == []
    assert report.failed == {
        f"{HARBOR} {MARCH}": f"check spans_point_into_bodies failed: {HARBOR} {MARCH}"
    }


def test_a_list_whose_source_is_down_fails_alone(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"), list_name=PIER)
    world.folder(HARBOR).rmdir()
    report = fill(world)
    assert report.done == [ListMonth(PIER, MARCH)]
    assert [*report.failed] == [f"list {HARBOR}"]
    assert "cannot be read" in report.failed[f"list {HARBOR}"]


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_the_command_exits_by_what_became_of_it(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch, broken: bool, code: int
) -> None:
    world.archive(MARCH, *([] if broken else [mail("a")]))
    if broken:
        (world.folder() / f"{HARBOR}.{MARCH}.mbox").write_bytes(b"<html>no</html>")
    lists = world.home / "lists.toml"
    lists.write_text(f"[{HARBOR}]\nsource = {json.dumps(str(world.folder()))}\n")
    monkeypatch.setenv("MAIL_HOME", str(world.home))
    monkeypatch.setenv("MAIL_LISTS", str(lists))
    result = CliRunner().invoke(main, ["backfill", "--list", HARBOR])
    assert result.exit_code == code, result.output
    assert ("1 failed" in result.output) == broken
