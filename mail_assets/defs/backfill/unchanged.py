"""Which months a backfill passes over: no step would write anything, and no check is due.

They become no run. What the steps have recorded decides (steps/unchanged_months.py), what the
sources have now, and what the UI shows of a month: one that is shown as missing or failed there is
run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import dagster as dg

from mail_assets.defs.backfill.months import KnownMonths
from mail_assets.defs.definitions import BLOCKING_CHECKS
from mail_assets.defs.partitions import asset_key, list_months
from mail_assets.encoding.open import resolve_model
from mail_assets.month import ListMonth
from mail_assets.settings.environment import Settings
from mail_assets.sources.source import SourceError
from mail_assets.steps.confirm_archive import confirm_archive
from mail_assets.steps.fetch_archive import FetchOptions
from mail_assets.steps.unchanged_months import Chain, UnchangedMonth, find_unchanged
from mail_assets.steps.vector_index import open_mail_bucket, open_mail_index
from mail_assets.steps.word_index import open_mail_words
from mail_assets.store.open import open_store
from mail_assets.workspace import Workspace

Unchanged = Mapping[ListMonth, UnchangedMonth]


def find_months_to_pass(
    settings: Settings,
    instance: dg.DagsterInstance,
    months: Iterable[ListMonth],
    assets: Sequence[str],
) -> Unchanged:
    """Return those of some months that need no run of some assets; sources are not asked."""
    shown = _find_materialized(settings, instance, [*months], assets)
    if not shown:
        return {}
    with _open_workspace(settings) as workspace:
        return find_unchanged(workspace, _chain(settings), shown, assets)


def confirm_archives(settings: Settings, known: KnownMonths, unchanged: Unchanged) -> Unchanged:
    """Return those of a list's months whose archives the source has as they are kept here.

    Where a listing does not tell, the source is asked month by month. One that cannot be asked is
    left to the runs, which say what is wrong.
    """
    confirmed: dict[ListMonth, UnchangedMonth] = {}
    with _open_workspace(settings) as workspace:
        for month in known.without_gaps:
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


def _find_materialized(
    settings: Settings,
    instance: dg.DagsterInstance,
    months: Sequence[ListMonth],
    assets: Sequence[str],
) -> list[ListMonth]:
    """Return the months that the UI shows as materialized in each of some assets."""
    partitions = list_months(tuple(settings.lists), settings.first_month, settings.last_month)
    keys = [month.key for month in months]
    shown = set(keys)
    for asset in assets:
        statuses = instance.get_status_by_partition(asset_key(asset), keys, partitions) or {}
        shown &= {key for key, status in statuses.items() if status and status.name == _DONE}
    return [month for month in months if month.key in shown]


#: The name of Dagster's status of a partition, whose type is not public.
_DONE = "MATERIALIZED"


def _chain(settings: Settings) -> Chain:
    """Return what makes the months by these settings."""
    bucket = open_mail_bucket(settings.database, settings.vectors)
    return Chain(
        _options(settings),
        settings.wordings,
        resolve_model(settings.encoder).sizes,
        open_mail_index(bucket, settings.vectors, settings.encoder, settings.precision),
        open_mail_words(settings.words),
        BLOCKING_CHECKS,
    )


def _options(settings: Settings) -> dict[str, FetchOptions]:
    return {name: FetchOptions(one.dialect) for name, one in settings.lists.items()}


@contextmanager
def _open_workspace(settings: Settings) -> Iterator[Workspace]:
    with settings.database.connect("backfill") as connection:
        yield Workspace(connection, open_store(settings.store), _ignore, settings.forget_key)


def _ignore(_line: str) -> None:
    """Log nothing: what is asked here is over in seconds."""
