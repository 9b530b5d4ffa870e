"""Which months a backfill covers."""

from dataclasses import replace

from mail_assets.defs.backfill.plan import find_months, months_archived
from mail_assets.month import ListMonth
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, mail

JUNE = "2024-06"


def of_harbor(*months: str) -> list[ListMonth]:
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
    assert find_months(settings, HARBOR).partitions == of_harbor(MARCH, MAY, JUNE)
    of_spring = find_months(settings, HARBOR, APRIL, MAY)
    assert of_spring.partitions == of_harbor(MAY)
    assert of_spring.beyond == of_harbor("2023-12", MARCH, JUNE, "2098-01")
    nothing = find_months(settings, PIER)
    assert (nothing.partitions, nothing.outside) == ([], [])
    early = replace(settings, first_month="2023-01")
    assert find_months(early, HARBOR, None, MARCH).partitions == of_harbor("2023-12", MARCH)
    assert months_archived(settings, HARBOR) == of_harbor(MARCH)


def test_months_outside_of_all_partitions_are_told_from_future_ones(world: DagsterWorld) -> None:
    for month in ("2023-12", MARCH, MAY, "2098-01"):
        world.archive(month, mail("x"))
    settings = world.settings()
    assert find_months(settings, HARBOR).outside == of_harbor("2023-12")
    closed = replace(settings, last_month=APRIL)
    known = find_months(closed, HARBOR)
    assert known.partitions == of_harbor(MARCH)
    assert known.outside == of_harbor("2023-12", MAY, "2098-01")
    assert find_months(closed, HARBOR, MARCH, APRIL).outside == []
