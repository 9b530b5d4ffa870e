"""Ticks of the sensor for archives, evaluated as by the daemon."""

import datetime as dt
import io
import logging

import dagster as dg

from mail_assets.defs.partitions import list_months
from mail_assets.defs.resources import ArchiveSourceResource, DatabaseResource
from mail_assets.defs.sensors import Patience, build_new_archives
from mail_assets.settings.lists import LoadedLists
from mail_assets_tests.world import World


class Tick:
    """Function that ticks in a world; `log` has the output, `now` is the time."""

    def __init__(self, world: World, instance: dg.DagsterInstance) -> None:
        self.world, self.instance = world, instance
        self.sources: dict[str, str] = {}
        self.last_month: str | None = None
        self.patience = Patience()
        self.now = dt.datetime.now(dt.UTC)
        self.log = io.StringIO()
        self.loaded: LoadedLists | None = None

    def __call__(self, cursor: str | None = None) -> dg.SensorResult | dg.SkipReason:
        lists = self.world.settings().lists
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            resources={
                "database": DatabaseResource(home=str(self.world.home), dsn=self.world.dsn),
                "archive_source": ArchiveSourceResource(
                    sources={name: one.source for name, one in lists.items()} | self.sources,
                    starts={name: one.start for name, one in lists.items()},
                    cache=str(self.world.home / "cache"),
                ),
            },
        )
        sensor = build_new_archives(
            list_months((*lists,), "2020-01", self.last_month),
            self.patience,
            lambda: self.now,
            self.loaded,
        )
        with context:
            context.log.addHandler(logging.StreamHandler(self.log))
            result = sensor(context)
            self.cursor = context.cursor
        assert isinstance(result, dg.SensorResult | dg.SkipReason)
        return result


def asked(result: dg.SensorResult | dg.SkipReason) -> list[str]:
    assert isinstance(result, dg.SensorResult)
    return [str(request.partition_key) for request in result.run_requests or []]


def run_keys(result: dg.SensorResult | dg.SkipReason) -> list[str | None]:
    assert isinstance(result, dg.SensorResult)
    return [request.run_key for request in result.run_requests or []]
