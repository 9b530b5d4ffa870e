"""Fill months of a list from the command line: the same runs as the UI's, one a list-year.

What lives here: which months a source has, cutting them into runs, running them in this
process on the Dagster instance, and adding up what they did. What does not: the work.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.dagster_home import use_dagster_home
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.partitions import months
from mail_assets.defs.run_log import RUN_CONFIG
from mail_assets.month import ListMonth, months_between
from mail_assets.settings.environment import Settings
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.open import open_source
from mail_assets.sources.source import SourceError
from mail_assets.tables.mbox_archives import archived_months

#: The figures of each asset: what its months hold, and the work that runs did for it.
HOLDS = {
    "mbox_archives": ("found", "bytes"),
    "messages": ("stored", "duplicates", "quarantined", "removed"),
    "chunks": ("chunks", "tokens"),
    "embeddings": ("texts",),
    "vectors": ("chunks",),
}
WORK = {
    "mbox_archives": ("fetched",),
    "messages": ("written", "deleted"),
    "chunks": ("written", "deleted"),
    "embeddings": ("encoded", "reused"),
    "vectors": ("written", "deleted"),
}


#: The first and the last month of a run, both included.
Range = tuple[ListMonth, ListMonth]


def backfill_lists(
    settings: Settings,
    lists: Sequence[str],
    first: str | None,
    last: str | None,
    *,
    allow_loss: bool,
    say: Callable[[str], None],
) -> "Report":
    """Fill the months of some lists between two months, then build the threads once.

    What belongs to no month fails under a name of its own: a list whose source cannot be listed
    as "LIST", the threads as "threads", the upkeep of the index as "vector index".
    """
    use_dagster_home(settings)
    with dg.DagsterInstance.get() as instance:
        work = Backfill(settings, instance, say)
        for name in lists:
            try:
                ranges = calendar_year_ranges(months_to_fill(settings, name, first, last))
            except SourceError as error:
                work.report.failed[f"list {name}"] = str(error)
                continue
            work.run(ranges, allow_loss)
        work.threads()
        if work.report.changed_in("vectors"):
            work.maintain()
    return work.report


def fill_index(settings: Settings, *, say: Callable[[str], None]) -> "Report":
    """Fill the index of the configured encoder with every month that we have, beside the live one.

    Nothing is fetched, parsed or cut anew.
    """
    use_dagster_home(settings)
    with dg.DagsterInstance.get() as instance:
        work = Backfill(settings, instance, say, assets=("embeddings", "vectors"))
        for name in settings.lists:
            with settings.database.connect("backfill") as connection:
                there = archived_months(connection, name)
            work.run(contiguous_ranges(there))
        if work.report.changed_in("vectors"):
            work.maintain()
    return work.report


@dataclass
class Report:
    """What a backfill did: months done and failed, and the summed figures of each asset."""

    done: list[ListMonth] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Counter[str]] = field(default_factory=dict)
    threads: int = 0

    @property
    def changed(self) -> bool:
        """Say whether anything was written or deleted anywhere."""
        return any(self.changed_in(asset) for asset in self.figures)

    def changed_in(self, asset: str) -> bool:
        """Say whether rows or vectors of an asset were written or deleted."""
        counts = self.figures.get(asset, Counter())
        return bool(counts["written"] or counts["deleted"])


def months_to_fill(
    settings: Settings, name: str, first: str | None, last: str | None
) -> list[ListMonth]:
    """Return the months of a list that its source has, or that we have, in order.

    A month that we have and the source has no more belongs to it: its run says so. A file
    that names a month to come belongs to no partition yet.
    """
    wanted = settings.lists[name]
    options = HttpOptions(auth=settings.http_auth)
    source = open_source(name, wanted.source, start=wanted.start, options=options)
    with settings.database.connect("backfill") as connection:
        there = {*archived_months(connection, name), *source.versions()}
    return [
        month
        for key in months(settings.first_month, settings.last_month).get_partition_keys()
        if (month := ListMonth(name, key)) in there and (first or "") <= key <= (last or "9999")
    ]


def calendar_year_ranges(filled: Iterable[ListMonth]) -> list[Range]:
    """Cut the months of a list into ranges, one a calendar year, from its first to its last."""
    years = itertools.groupby(sorted(filled), key=lambda month: month.year)
    groups = [[*group] for _, group in years]
    return [(group[0], group[-1]) for group in groups]


def contiguous_ranges(filled: Iterable[ListMonth]) -> list[Range]:
    """Cut the months of a list into ranges without gaps, none longer than a calendar year."""
    ranges: list[Range] = []
    for month in sorted(filled):
        first, last = ranges[-1] if ranges else (month, month)
        follows = len(months_between(last.month, month.month)) == 2 and first.year == month.year
        if follows:
            ranges[-1] = (first, month)
        else:
            ranges.append((month, month))
    return ranges


class Backfill:
    """Runs ranges of months on one instance, and keeps the account."""

    def __init__(
        self,
        settings: Settings,
        instance: dg.DagsterInstance,
        say: Callable[[str], None],
        assets: Sequence[str] = tuple(HOLDS),
    ) -> None:
        self._assets = assets
        self._defs = build_defs(settings)
        self._instance = instance
        self._say = say
        self._job = self._defs.resolve_implicit_global_asset_job_def()
        self.report = Report()

    def run(self, ranges: Sequence[Range], allow_loss: bool = False) -> None:
        """Run each range; one that fails is run again month by month, so that a month that
        cannot be made fails alone.
        """
        for first, last in ranges:
            self._say(f"{first} to {last.month}")
            if self._range(first, last, allow_loss) or first == last:
                continue
            self._say(f"{first.list_name} {first.year}: failed, going month by month")
            for month in _months(first, last):
                self._range(month, month, allow_loss)

    def threads(self) -> None:
        """Build the threads of the whole corpus, once, behind all ranges."""
        result = self._execute(["threads"], {}, False)
        for event in result.asset_materializations_for_node("mail__threads"):
            self.report.threads = int(_number(event.metadata.get("threads")))
        if not result.success:
            self.report.failed["threads"] = _reason(result)

    def maintain(self) -> None:
        """Compact and index the bucket: every month written leaves a fragment that slows it."""
        result = self._defs.resolve_job_def("maintain_vectors").execute_in_process(
            instance=self._instance, run_config=RUN_CONFIG, raise_on_error=False
        )
        if not result.success:
            self.report.failed["vector index"] = _reason(result)

    def _range(self, first: ListMonth, last: ListMonth, allow_loss: bool) -> bool:
        tags = {
            "dagster/asset_partition_range_start": first.key,
            "dagster/asset_partition_range_end": last.key,
        }
        result = self._execute(self._assets, tags, allow_loss)
        self._add(result, WORK)
        if result.success:
            self.report.done += _months(first, last)
            self._add(result, HOLDS)
        elif first == last:
            self.report.failed[str(first)] = _reason(result)
        return result.success

    def _execute(
        self, assets: Sequence[str], tags: dict[str, str], allow_loss: bool
    ) -> dg.ExecuteInProcessResult:
        config = {"mail__mbox_archives": {"config": {"allow_loss": allow_loss}}}
        return self._job.execute_in_process(
            instance=self._instance,
            tags=tags,
            asset_selection=[asset_key(name) for name in assets],
            run_config={**RUN_CONFIG, "ops": config if "mbox_archives" in assets else {}},
            raise_on_error=False,
        )

    def _add(self, result: dg.ExecuteInProcessResult, figures: Mapping[str, Sequence[str]]) -> None:
        """Add the figures of each month; a run that failed half-way has done work too.

        From the event log: what a failed step has recorded is not in the run's result.
        """
        records = self._instance.get_records_for_run(
            result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        ).records
        months = [record.asset_materialization for record in records]
        for asset in self._assets:
            names = figures[asset]
            counts = self.report.figures.setdefault(asset, Counter())
            for month in months:
                if month and month.asset_key == asset_key(asset):
                    counts.update({n: int(_number(month.metadata.get(n))) for n in names})


def report_lines(report: Report) -> Iterator[str]:
    """Yield what a backfill did, one line an asset; short where nothing was written."""
    months = f"{len(report.done)} months"
    if not report.changed and not report.failed:
        yield f"{months}: nothing changed"
    else:
        yield f"{months} materialized, {len(report.failed)} failed"
    for asset, counts in report.figures.items():
        yield f"  {asset:<14} " + ", ".join(
            f"{name} {counts[name]}" for name in HOLDS[asset] + WORK[asset]
        )
    yield f"  {'threads':<14} {report.threads}"


def _months(first: ListMonth, last: ListMonth) -> list[ListMonth]:
    return [ListMonth(first.list_name, month) for month in months_between(first.month, last.month)]


def _number(value: object) -> float:
    return getattr(value, "value", 0) or 0


def _reason(result: dg.ExecuteInProcessResult) -> str:
    """Return why a run failed: the check that stopped it, or what its first failed step said."""
    stopped = [
        f"check {check.check_name} {check.description}"
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
    ]
    failures = [event.step_failure_data for event in result.get_step_failure_events()]
    told = [f.user_failure_data.description for f in failures if f.user_failure_data]
    errors = [failure.error.message.strip() for failure in failures if failure.error]
    return next(filter(None, [*stopped, *told, *errors]), "the run failed")
