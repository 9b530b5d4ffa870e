"""Fill months of a list from the command line: the same runs as the UI's, one a list-year.

What lives here: which months a source has, cutting them into runs, running them in this
process on the Dagster instance, and adding up what they did. What does not: the work.
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import dagster as dg

from mail_assets.definitions import build_defs, build_resources
from mail_assets.partitions import Archive
from mail_assets.resources.archives import ArchiveSourceResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.server import link_dagster_home
from mail_assets.settings import Settings
from mail_assets.store.archives import archived_months

#: What is added up of each asset, and under which name it is reported.
FIGURES = {
    "mbox_archives": ("found", "bytes", "fetched"),
    "messages": ("found", "stored", "duplicates", "quarantined", "written", "deleted"),
    "chunks": ("chunks", "tokens", "written", "deleted"),
    "embeddings": ("texts", "encoded", "reused"),
    "vectors": ("written", "deleted"),
}


def backfill_lists(
    settings: Settings,
    lists: Sequence[str],
    first: str | None,
    last: str | None,
    *,
    allow_loss: bool,
    say: Callable[[str], None],
) -> "Report":
    """Fill the months of some lists between two months, then build the threads once."""
    link_dagster_home(settings.dagster_home)
    os.environ.setdefault("DAGSTER_HOME", str(settings.dagster_home))
    with dg.DagsterInstance.get() as instance:
        work = Backfill(settings, instance, say)
        for name in lists:
            months = months_to_fill(settings, name, first, last)
            work.run(year_runs(name, months), allow_loss)
        work.threads()
    return work.report


@dataclass
class Report:
    """What a backfill did: months done and failed, and the summed figures of each asset."""

    done: list[Archive] = field(default_factory=list)
    failed: dict[Archive, str] = field(default_factory=dict)
    figures: dict[str, Counter[str]] = field(default_factory=dict)
    threads: int = 0

    @property
    def changed(self) -> bool:
        """Say whether anything was written or deleted anywhere."""
        return any(
            counts[name] for counts in self.figures.values() for name in ("written", "deleted")
        )


def months_to_fill(settings: Settings, name: str, first: str | None, last: str | None) -> list[str]:
    """Return the months of a list that its source has, or that we have, in order.

    A month that we have and the source has no more belongs to it: its run says so.
    """
    resources = build_resources(settings)
    sources, database = resources["archive_source"], resources["database"]
    assert isinstance(sources, ArchiveSourceResource)
    assert isinstance(database, DatabaseResource)
    with database.connect("backfill") as connection:
        known = {*archived_months(connection, name)}
    listed = {*sources.of(name).versions()}
    return sorted(
        month
        for month in known | listed
        if (first or settings.first_month) <= month <= (last or "9999")
    )


def year_runs(name: str, months: Iterable[str]) -> list[tuple[Archive, Archive]]:
    """Cut months into ranges, one a calendar year, from its first to its last month."""
    years = itertools.groupby(sorted(months), key=lambda month: month[:4])
    groups = [[*group] for _, group in years]
    return [(Archive(name, group[0]), Archive(name, group[-1])) for group in groups]


class Backfill:
    """Runs ranges of months on one instance, and keeps the account."""

    def __init__(
        self, settings: Settings, instance: dg.DagsterInstance, say: Callable[[str], None]
    ) -> None:
        self._defs = build_defs(settings)
        self._instance = instance
        self._say = say
        self._job = self._defs.resolve_implicit_global_asset_job_def()
        self.report = Report()

    def run(self, ranges: Sequence[tuple[Archive, Archive]], allow_loss: bool = False) -> None:
        """Run each range; one that fails is run again month by month, so that a month that
        cannot be made fails alone.
        """
        for first, last in ranges:
            self._say(f"{first.list} {first.month} to {last.month}")
            if self._range(first, last, allow_loss) or first == last:
                continue
            self._say(f"{first.list} {first.month[:4]}: failed, going month by month")
            for archive in months_between(first, last):
                self._range(archive, archive, allow_loss)

    def threads(self) -> bool:
        """Build the threads of the whole corpus, once, behind all ranges."""
        result = self._execute(["threads"], {}, False)
        for event in result.asset_materializations_for_node("threads"):
            self.report.threads = int(_number(event.metadata.get("threads")))
        return result.success

    def _range(self, first: Archive, last: Archive, allow_loss: bool) -> bool:
        tags = {
            "dagster/asset_partition_range_start": str(first.key),
            "dagster/asset_partition_range_end": str(last.key),
        }
        result = self._execute([*FIGURES], tags, allow_loss)
        months = months_between(first, last)
        if result.success:
            self.report.done += months
            for archive in months:
                self.report.failed.pop(archive, None)
            self._add(result)
        elif first == last:
            self.report.failed[first] = _reason(result)
        return result.success

    def _execute(
        self, assets: Sequence[str], tags: dict[str, str], allow_loss: bool
    ) -> dg.ExecuteInProcessResult:
        config = {"mbox_archives": {"config": {"allow_loss": allow_loss}}}
        return self._job.execute_in_process(
            instance=self._instance,
            tags=tags,
            asset_selection=[dg.AssetKey(name) for name in assets],
            run_config={"ops": config} if "mbox_archives" in assets else None,
            raise_on_error=False,
        )

    def _add(self, result: dg.ExecuteInProcessResult) -> None:
        for asset, names in FIGURES.items():
            counts = self.report.figures.setdefault(asset, Counter())
            for event in result.asset_materializations_for_node(asset):
                # a range's sums stand in the metadata of each of its months
                for name in names:
                    counts[name] += int(_number(event.metadata.get(name)))


def months_between(first: Archive, last: Archive) -> list[Archive]:
    """Return the months from first to last, both included."""
    year, month = map(int, first.month.split("-"))
    found = []
    while (key := f"{year:04}-{month:02}") <= last.month:
        found.append(Archive(first.list, key))
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return found


def report_lines(report: Report) -> Iterator[str]:
    """Yield what a backfill did, one line an asset; short where nothing was written."""
    months = f"{len(report.done)} months"
    if not report.changed and not report.failed:
        yield f"{months}: nothing changed"
    else:
        yield f"{months} materialized, {len(report.failed)} failed"
    for asset, counts in report.figures.items():
        yield f"  {asset:<14} " + ", ".join(f"{name} {counts[name]}" for name in FIGURES[asset])
    yield f"  {'threads':<14} {report.threads}"


def _number(value: object) -> float:
    return getattr(value, "value", 0) or 0


def _reason(result: dg.ExecuteInProcessResult) -> str:
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return failure.user_failure_data.description
        if failure.error:
            return failure.error.message.strip()
    failed = [e for e in result.get_asset_check_evaluations() if not e.passed]
    return ", ".join(f"check {e.check_name}: {e.description}" for e in failed) or "the run failed"
