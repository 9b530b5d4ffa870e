"""Which months a backfill covers."""

from dataclasses import replace

from mail_assets.defs.backfill.months import months_archived, months_to_fill
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
    assert months_to_fill(settings, HARBOR) == of_harbor(MARCH, MAY, JUNE)
    assert months_to_fill(settings, HARBOR, APRIL, MAY) == of_harbor(MAY)
    assert months_to_fill(settings, PIER) == []
    early = replace(settings, first_month="2023-01")
    assert months_to_fill(early, HARBOR, None, MARCH) == of_harbor("2023-12", MARCH)
    assert months_archived(settings, HARBOR) == of_harbor(MARCH)
