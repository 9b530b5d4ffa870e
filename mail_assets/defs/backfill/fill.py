"""Fill the months of some lists, or another index with all months that are archived."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from mail_assets.defs.backfill.events import Listener, MonthsPassed
from mail_assets.defs.backfill.months import KnownMonths, find_months, months_archived
from mail_assets.defs.backfill.range_workers import RangeWorkers
from mail_assets.defs.backfill.ranges import MonthRange, contiguous_ranges
from mail_assets.defs.backfill.report import CHAIN, Report
from mail_assets.defs.backfill.runs import Runs
from mail_assets.defs.backfill.unchanged import confirm_archives, find_months_to_pass
from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import open_instance
from mail_assets.defs.runs import cancel_abandoned
from mail_assets.encoding.open import check_model
from mail_assets.settings.environment import Settings
from mail_assets.sources.source import SourceError

#: The assets of the index of an encoder.
INDEXED = ("embeddings", "vectors")


@dataclass(frozen=True)
class BackfillRequest:
    """What to fill: lists, the first and the last month ("YYYY-MM", None for all there are).

    `allow_loss` accepts archives that vanished or lost messages since they were fetched last;
    `jobs` processes run ranges at once, of which one encodes at a time.
    """

    lists: Sequence[str]
    first: str | None = None
    last: str | None = None
    allow_loss: bool = False
    jobs: int = 1


def backfill_lists(settings: Settings, request: BackfillRequest, listener: Listener) -> Report:
    """Fill the months of some lists, then build the threads once and maintain the indexes.

    A list whose source cannot be listed fails alone. Ctrl-C ends the backfill: the report says so
    and has what was done until then.
    """
    with _open_runs(settings, listener, CHAIN) as runs:
        ranges = plan_ranges(settings, runs.instance, request, runs.report)
        listener(MonthsPassed(len(runs.report.unchanged)))
        if request.jobs > 1:
            workers = RangeWorkers(
                settings, CHAIN, request.jobs, listener, runs.report, request.allow_loss
            )
            workers.run_ranges(ranges)
        else:
            runs.run_ranges(ranges, request.allow_loss)
        runs.build_threads()
        runs.maintain_indexes()
    return runs.report


def plan_ranges(
    settings: Settings, instance: dg.DagsterInstance, request: BackfillRequest, report: Report
) -> Sequence[MonthRange]:
    """Return the ranges of months that need a run, gaps included.

    The report gets the months that need none, those outside of all partitions or beyond the range
    that was asked for, and the lists whose sources cannot be listed.
    """
    listed: list[KnownMonths] = []
    for name in request.lists:
        try:
            listed.append(find_months(settings, name, request.first, request.last))
        except SourceError as error:
            report.failed[f"list {name}"] = str(error)
    months = [month for known in listed for month in known.without_gaps]
    unchanged = find_months_to_pass(settings, instance, months, CHAIN)
    for known in listed:
        report.outside += known.outside
        report.beyond += known.beyond
        report.add_unchanged(confirm_archives(settings, known, unchanged))
    done = {*report.unchanged}
    return contiguous_ranges(month for month in months if month not in done)


def load_stored(settings: Settings, request: BackfillRequest, listener: Listener) -> Report:
    """Make everything of some lists from the archives that are stored, and ask no source.

    For a home that was restored, whose sources may be gone. Of the request only the lists count;
    otherwise as backfill_lists.
    """
    with _open_runs(settings, listener, CHAIN[1:]) as runs:
        archived = [months_archived(settings, name) for name in request.lists]
        runs.run_ranges([one for months in archived for one in contiguous_ranges(months)])
        runs.build_threads()
        runs.maintain_indexes()
    return runs.report


def fill_index(settings: Settings, listener: Listener) -> Report:
    """Fill the index of the configured encoder with every archived month, beside the live index.

    The newest come first. Nothing is fetched, parsed or chunked again. Ctrl-C ends it as it ends a
    backfill.
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


@contextmanager
def _open_runs(settings: Settings, listener: Listener, assets: Sequence[str]) -> Iterator[Runs]:
    """Open the Dagster instance of the home; Ctrl-C within the block ends it and is reported.

    Raises:
        ModelFileError: the model is not installed; known now, not when the first month needs it.
    """
    check_model(settings.encoder, settings.model_cache)
    with open_instance(settings) as instance:
        cancel_abandoned(instance)
        runs = Runs(build_defs(settings), instance, listener, assets)
        try:
            yield runs
        except KeyboardInterrupt:
            runs.report.interrupted = True
        finally:
            cancel_abandoned(instance)  # of a process that died in this backfill
