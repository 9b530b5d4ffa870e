"""Which months of a list a backfill covers."""

from mail_assets.defs.partitions import months
from mail_assets.month import ListMonth
from mail_assets.settings.environment import Settings
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.open import open_source
from mail_assets.tables.mbox_archives import archived_months


def months_to_fill(
    settings: Settings, list_name: str, first: str | None = None, last: str | None = None
) -> list[ListMonth]:
    """Return the months of a list that its source has, or that are archived here, in order.

    A month that is archived here and gone from the source is included: its run reports the loss.
    Files dated in the future are ignored: their months are no partitions yet.

    Raises:
        SourceError: the source cannot be listed.
    """
    wanted = settings.lists[list_name]
    options = HttpOptions(auth=settings.http_auth)
    source = open_source(list_name, wanted.source, start=wanted.start, options=options)
    known = {*months_archived(settings, list_name), *source.versions()}
    return [
        month
        for key in months(settings.first_month, settings.last_month).get_partition_keys()
        if (month := ListMonth(list_name, key)) in known
        and (first or "") <= key <= (last or "9999")
    ]


def months_archived(settings: Settings, list_name: str) -> list[ListMonth]:
    """Return the months of a list whose archives are in the store, in order."""
    with settings.database.connect("backfill") as connection:
        return sorted(archived_months(connection, list_name))
