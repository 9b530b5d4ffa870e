"""Fills the months of some lists, or fills another index from all archived months.

A backfill skips months in which no step would write anything and no check is due. It decides by the
records of the steps (steps/unchanged_months.py), the archives that the source has now, and the runs
in the UI. A month is run if the UI shows it as missing, or if its last run failed.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import dagster as dg

from mail_assets.defs.backfill.report import (
    Listener,
    MonthRange,
    MonthsPassed,
    Report,
    calendar_year_ranges,
    contiguous_ranges,
)
from mail_assets.defs.backfill.runs import Runs, StepOptions
from mail_assets.defs.backfill.workers import RangeWorkers
from mail_assets.defs.definitions import (
    CONTENT_CHECKS,
    build_defs,
    build_encoder,
    build_repositories,
)
from mail_assets.defs.instance import open_instance
from mail_assets.defs.partitions import CORPUS_ASSETS, MONTHLY, asset_key, list_months, months
from mail_assets.defs.runs import cancel_abandoned, failed_months
from mail_assets.encoding.open import check_model
from mail_assets.indexes.live import find_recorded
from mail_assets.indexes.names import is_word_index
from mail_assets.indexes.vectors import (
    check_mail_bucket,
    name_spec,
    open_mail_bucket,
    open_mail_vectors,
)
from mail_assets.indexes.words import open_mail_words
from mail_assets.month import ListMonth
from mail_assets.settings.settings import Settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import ArchiveSource, HttpOptions, SourceError
from mail_assets.steps.fetch_archive import FetchOptions
from mail_assets.steps.read_commits import find_months_behind
from mail_assets.steps.unchanged_months import (
    Chain,
    UnchangedMonth,
    confirm_archive,
    find_unchanged,
)
from mail_assets.tables.mbox_archives import archived_months, read_archives
from mail_assets.workspace import Workspace


class KnownMonths(NamedTuple):
    """Months of a list that its source has or that are archived here, in order.

    Attributes:
        versions: the versions that the source has listed.
        partitions: months of the range that have partitions.
        with_gaps: these, and months of the range without an archive: those that are recorded as
            empty, and those between other months of a calendar year.
        outside: months before `first_month` or after `last_month` of lists.toml.
        beyond: months before or after the requested range.
    """

    source: ArchiveSource
    versions: Mapping[ListMonth, str]
    partitions: list[ListMonth]
    with_gaps: list[ListMonth]
    outside: list[ListMonth]
    beyond: list[ListMonth]


def find_months(
    settings: Settings, list_name: str, first: str | None = None, last: str | None = None
) -> KnownMonths:
    """Return the months of a list from `first` to `last`, both included.

    A month that is archived here but no longer at the source is included: its run reports the loss.
    Files dated in the future are ignored: their months have no partitions yet.

    Raises:
        SourceError: the source cannot be listed.
    """
    wanted = settings.lists[list_name]
    options = HttpOptions(auth=settings.http_auth, redirect_hosts=wanted.redirect_hosts)
    cache = settings.source_cache
    source = open_source(list_name, wanted.source, start=wanted.start, options=options, cache=cache)
    versions = source.versions()
    there = {*months_archived(settings, list_name), *versions}
    keys = {*months(settings.first_month, settings.last_month).get_partition_keys()}
    possible = [month for month in there if month.month in keys]
    filled = {month for one in calendar_year_ranges(possible) for month in one.months}
    with settings.database.connect("backfill") as connection:
        filled |= read_archives(connection, [list_name]).keys()

    def in_range(found: Iterable[ListMonth]) -> list[ListMonth]:
        return sorted(one for one in found if (first or "") <= one.month <= (last or "9999"))

    known = in_range(there)
    oldest, newest = settings.first_month, settings.last_month or "9999"
    return KnownMonths(
        source,
        versions,
        [month for month in known if month.month in keys],
        [month for month in in_range(filled) if month.month in keys],
        [month for month in known if not oldest <= month.month <= newest],
        sorted(there.difference(known)),
    )


def months_archived(settings: Settings, list_name: str) -> list[ListMonth]:
    """Return the months of a list that have an archive or rows made from one, in order."""
    with settings.database.connect("backfill") as connection:
        return sorted(archived_months(connection, list_name))


Unchanged = Mapping[ListMonth, UnchangedMonth]


def find_months_to_pass(
    settings: Settings,
    instance: dg.DagsterInstance,
    months: Iterable[ListMonth],
    assets: Sequence[str],
) -> Unchanged:
    """Return the months that need no run of some assets; sources are not asked.

    A month whose last run failed needs one, even if everything was made before the failure.
    """
    failed = failed_months(instance, [*settings.lists], dt.datetime.now(dt.UTC))
    wanted = [month for month in months if month not in failed]
    shown = find_materialized(settings, instance, wanted, assets)
    if not shown:
        return {}
    with settings.open_workspace("backfill") as workspace:
        return find_unchanged(workspace, _chain(settings), shown, assets)


def confirm_archives(settings: Settings, known: KnownMonths, unchanged: Unchanged) -> Unchanged:
    """Return the unchanged months of a list whose archives are also unchanged at the source.

    If the listing does not prove this, the source is asked month by month. If it fails, the
    remaining months are run, so that the runs report its error.
    """
    confirmed: dict[ListMonth, UnchangedMonth] = {}
    with settings.open_workspace("backfill") as workspace:
        for month in known.with_gaps:
            try:
                if month in unchanged and _is_kept(settings, workspace, known, month, unchanged):
                    confirmed[month] = unchanged[month]
            except SourceError:
                break
    return confirmed


def _is_kept(
    settings: Settings,
    workspace: Workspace,
    known: KnownMonths,
    month: ListMonth,
    unchanged: Unchanged,
) -> bool:
    archive, version = unchanged[month].archive, known.versions.get(month)
    if version is None:
        return archive.object_key is None
    if version and known.source.listing_proves:
        return archive.object_key is not None and version == archive.version
    return confirm_archive(workspace, month, known.source, _options(settings)[month.list_name])


def find_materialized(
    settings: Settings,
    instance: dg.DagsterInstance,
    months: Sequence[ListMonth],
    assets: Sequence[str],
) -> list[ListMonth]:
    """Return the months that the UI shows as materialized for all of `assets`."""
    partitions = list_months(tuple(settings.lists), settings.first_month, settings.last_month)
    keys = [month.key for month in months]
    shown = set(keys)
    for asset in assets:
        statuses = instance.get_status_by_partition(asset_key(asset), keys, partitions) or {}
        shown &= {key for key, status in statuses.items() if status and status.name == _DONE}
    return [month for month in months if month.key in shown]


#: Name of Dagster's status of a materialized partition; the type is not public.
_DONE = "MATERIALIZED"


def _chain(settings: Settings) -> Chain:
    bucket = open_mail_bucket(settings.database, settings.vectors)
    return Chain(
        _options(settings),
        settings.list_defaults,
        build_encoder(settings).sizes,
        open_mail_vectors(bucket, settings.vectors, settings.encoder, settings.precision),
        open_mail_words(settings.words),
        CONTENT_CHECKS,
    )


def _options(settings: Settings) -> dict[str, FetchOptions]:
    return {name: FetchOptions(one.dialect) for name, one in settings.lists.items()}


#: The assets that fill the index of an encoder.
INDEXED = ("embeddings", "vectors")


@dataclass(frozen=True)
class BackfillRequest:
    """Lists to fill, and options.

    first, last: the first and the last month, "YYYY-MM"; None means no limit.
    allow_loss: accept archives that vanished or lost messages since they were last fetched.
    jobs: number of processes that run ranges; only one of them encodes at a time.
    rebuild: skip no month, and make everything again.
    only: the assets to make, () for all.
    """

    lists: Sequence[str]
    first: str | None = None
    last: str | None = None
    allow_loss: bool = False
    jobs: int = 1
    rebuild: bool = False
    only: Sequence[str] = ()

    @property
    def options(self) -> StepOptions:
        """Run configuration of the assets."""
        return StepOptions(self.allow_loss, self.rebuild)

    @property
    def chain(self) -> Sequence[str]:
        """The partitioned assets to make, in the order of the chain."""
        return [asset for asset in MONTHLY if asset in (self.only or MONTHLY)]

    @property
    def corpus(self) -> Sequence[str]:
        """The assets without months to make again; none if the range of months is limited."""
        if self.only:
            return [asset for asset in CORPUS_ASSETS if asset in self.only]
        return CORPUS_ASSETS if self.rebuild and not (self.first or self.last) else ()


def backfill_lists(settings: Settings, request: BackfillRequest, listener: Listener) -> Report:
    """Fill the months of some lists, then build the threads once and maintain the indexes.

    A list whose source cannot be listed does not stop the others. Ctrl-C ends the backfill:
    `report.interrupted` is set, and the report has the months made so far.
    """
    with _open_runs(settings, listener, request.chain) as runs:
        ranges = plan_ranges(settings, runs.instance, request, runs.report)
        listener(MonthsPassed(len(runs.report.unchanged)))
        if request.jobs > 1:
            workers = RangeWorkers(
                settings, request.chain, request.jobs, listener, runs.report, request.options
            )
            workers.run_ranges(ranges)
        else:
            runs.run_ranges(ranges, request.options)
        _finish(settings, runs, request)
    return runs.report


def _finish(settings: Settings, runs: Runs, request: BackfillRequest) -> None:
    if not request.only or "commits" in request.only:
        _read_commits(settings, runs, request)
    if request.corpus:
        runs.build_threads(request.corpus, request.options)
    elif not request.only or {"messages", "patches", "commits"} & {*request.only}:
        runs.build_threads()
    runs.maintain_indexes()


def _read_commits(settings: Settings, runs: Runs, request: BackfillRequest) -> None:
    """Read the commits of the lists' repositories, in the outdated months of the range.

    Months whose last run failed are included, even if it has read their commits. A repository that
    cannot be read does not stop other lists.
    """
    repositories = build_repositories(settings)
    possible = {*months(settings.first_month, settings.last_month).get_partition_keys()}
    first, last = request.first or "", request.last or "9999"
    failed = failed_months(runs.instance, request.lists, dt.datetime.now(dt.UTC))
    behind: list[ListMonth] = []
    for list_name, sources in repositories.by_list().items():
        if list_name not in request.lists:
            continue
        try:
            with settings.database.connect("backfill") as connection:
                found = find_months_behind(connection, {list_name: sources}, all=request.rebuild)
        except SourceError as error:
            runs.report.failed[f"commits of {list_name}"] = str(error)
            continue
        wanted = sorted({*found, *(month for month in failed if month.list_name == list_name)})
        behind += [m for m in wanted if m.month in possible and first <= m.month <= last]
    if behind:
        runs.read_commits(contiguous_ranges(behind), request.options)


def plan_ranges(
    settings: Settings, instance: dg.DagsterInstance, request: BackfillRequest, report: Report
) -> Sequence[MonthRange]:
    """Return the ranges of months that need a run, gaps included.

    Add to the report: unchanged months, months without partitions or beyond the range, and lists
    whose sources cannot be listed.
    """
    if "mbox_archives" not in request.chain:
        return _stored_ranges(settings, request)
    listed: list[KnownMonths] = []
    for name in request.lists:
        try:
            listed.append(find_months(settings, name, request.first, request.last))
        except SourceError as error:
            report.failed[f"list {name}"] = str(error).removeprefix(f"list {name}: ")
    months = [month for known in listed for month in known.with_gaps]
    asked = () if request.rebuild else months
    unchanged = find_months_to_pass(settings, instance, asked, MONTHLY)
    for known in listed:
        name = known.source.list_name
        report.remarks += [f"{name}: {line}" for line in known.source.new_remarks()]
        if not (known.partitions or known.outside or known.beyond):
            report.failed[f"list {name}"] = (
                f"its source {known.source.url} has no month; check its source in lists.toml"
            )
        report.outside += known.outside
        report.beyond += known.beyond
        report.add_unchanged(confirm_archives(settings, known, unchanged))
    done = {*report.unchanged}
    return contiguous_ranges(month for month in months if month not in done)


def load_stored(settings: Settings, request: BackfillRequest, listener: Listener) -> Report:
    """Make everything of some lists from the stored archives, without asking the sources.

    It is for a restored home, whose sources may no longer exist. It runs all stored months;
    otherwise it works like backfill_lists.
    """
    chain = [asset for asset in request.chain if asset != "mbox_archives"]
    with _open_runs(settings, listener, chain) as runs:
        runs.run_ranges(_stored_ranges(settings, request), request.options)
        _finish(settings, runs, request)
    return runs.report


def _stored_ranges(settings: Settings, request: BackfillRequest) -> list[MonthRange]:
    return [
        one
        for name in request.lists
        for one in contiguous_ranges(
            month
            for month in (months_archived(settings, name) if request.chain else ())
            if (request.first or "") <= month.month <= (request.last or "9999")
        )
    ]


def fill_index(settings: Settings, listener: Listener) -> Report:
    """Fill the index of the configured encoder with every archived month, newest first.

    The live index is not changed. Nothing is fetched, parsed or cut again. Ctrl-C works as in
    backfill_lists.
    """
    with _open_runs(settings, listener, INDEXED) as runs:
        archived = [month for name in settings.lists for month in months_archived(settings, name)]
        unchanged = find_months_to_pass(settings, runs.instance, archived, INDEXED)
        runs.report.add_unchanged(unchanged)
        listener(MonthsPassed(len(unchanged)))
        ranges = contiguous_ranges(month for month in archived if month not in unchanged)
        runs.run_ranges(sorted(ranges, key=lambda one: one.last.month, reverse=True))
        runs.maintain_indexes()
    return runs.report


def rebuild_index(settings: Settings, name: str, listener: Listener) -> Report:
    """Drop a word index or vector index, damaged or not, and fill it again.

    Raises:
        LifecycleError: no such index was filled, or this version cannot fill it.
    """
    with settings.database.connect("index") as connection:
        if is_word_index(name):
            words = open_mail_words(settings.words)
            find_recorded(connection, settings.words, name, words.name)
            words.index.drop()
            assets: Sequence[str] = ("words",)
        else:
            record = find_recorded(connection, settings.vectors, name)
            settings = replace(settings, encoder=record.encoder, precision=record.precision)
            open_mail_bucket(settings.database, settings.vectors).index(name_spec(name)).drop()
            assets = INDEXED
    request = BackfillRequest([*settings.lists], only=assets)
    return backfill_lists(settings, request, listener)


@contextmanager
def _open_runs(settings: Settings, listener: Listener, assets: Sequence[str]) -> Iterator[Runs]:
    """Open the Dagster instance of the home; Ctrl-C ends the block and is noted in the report."""
    check_model(settings.encoder, settings.model_cache)
    check_mail_bucket(settings.database, settings.vectors)
    with open_instance(settings) as instance:
        cancel_abandoned(instance)
        runs = Runs(build_defs(settings), instance, listener, assets)
        try:
            yield runs
        except KeyboardInterrupt:
            runs.report.interrupted = True
        finally:
            cancel_abandoned(instance)  # runs of processes that died in this backfill
