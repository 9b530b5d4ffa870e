"""Which months of a list a backfill covers."""

from collections.abc import Mapping
from typing import NamedTuple

from mail_assets.defs.backfill.ranges import calendar_year_ranges
from mail_assets.defs.partitions import months
from mail_assets.month import ListMonth
from mail_assets.settings.environment import Settings
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.open import open_source
from mail_assets.sources.source import ArchiveSource
from mail_assets.tables.mbox_archives import archived_months


class KnownMonths(NamedTuple):
    """The months of a list that its source has, or that are archived here, in order.

    `outside` are those before `first_month` or after `last_month` of lists.toml: they have no
    partitions. `beyond` are those before or after the range that was asked for. `versions` is what
    the source has listed.
    """

    source: ArchiveSource
    versions: Mapping[ListMonth, str]
    partitions: list[ListMonth]
    outside: list[ListMonth]
    beyond: list[ListMonth]

    @property
    def without_gaps(self) -> list[ListMonth]:
        """The months, and those between them in a calendar year, which are recorded as empty."""
        return [month for one in calendar_year_ranges(self.partitions) for month in one.months]


def find_months(
    settings: Settings, list_name: str, first: str | None = None, last: str | None = None
) -> KnownMonths:
    """Return the months of a list from `first` to `last`, both included.

    A month that is archived here and gone from the source is included: its run reports the loss.
    Files dated in the future are ignored: their months are no partitions yet.

    Raises:
        SourceError: the source cannot be listed.
    """
    wanted = settings.lists[list_name]
    options = HttpOptions(auth=settings.http_auth)
    cache = settings.source_cache
    source = open_source(list_name, wanted.source, start=wanted.start, options=options, cache=cache)
    versions = source.versions()
    there = sorted({*months_archived(settings, list_name), *versions})
    known = [month for month in there if (first or "") <= month.month <= (last or "9999")]
    keys = {*months(settings.first_month, settings.last_month).get_partition_keys()}
    oldest, newest = settings.first_month, settings.last_month or "9999"
    return KnownMonths(
        source,
        versions,
        [month for month in known if month.month in keys],
        [month for month in known if not oldest <= month.month <= newest],
        sorted({*there} - {*known}),
    )


def months_archived(settings: Settings, list_name: str) -> list[ListMonth]:
    """Return the months of a list that have an archive, or what was made of it, in order."""
    with settings.database.connect("backfill") as connection:
        return sorted(archived_months(connection, list_name))
