"""Refuse an archive that lost messages or is another list's; keep what a former one held.

Messages are compared, not counted: 200 that were replaced by 200 others are 200 lost.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mail_assets.mail.archive.compression import unpacked
from mail_assets.mail.archive.mbox import read_contents
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import StepError
from mail_assets.tables.mbox_archives import (
    ArchiveRow,
    local_archive,
    prefix_of_messages,
    usual_list_ids,
)
from mail_assets.tables.removed_upstream import drop_former, expired_archives, kept_former
from mail_assets.workspace import Workspace

#: A month may lose this share of its messages, or one message, without being refused:
#: archives hide single messages that a moderator takes down.
MAX_LOSS = 0.03

#: Months of a list that must name another list before one is refused; a list that was renamed is
#: accepted in so many months before others may have the new name too.
MIN_MONTHS = 2

REMEDY = (
    "If it is meant, run `mail-assets backfill --allow-loss` for this month, or materialize "
    "mbox_archives with allow_loss: true"
)


class Loss(NamedTuple):
    """What the former archive held: `vanished` is digest -> Message-ID of what is gone."""

    former: int
    vanished: Mapping[str, str]
    lost: int


NO_LOSS = Loss(0, {}, 0)


def find_loss(workspace: Workspace, former: ArchiveRow, now: Mapping[str, str], found: int) -> Loss:
    """Return what the former archive held and the new one does not.

    Where the store has lost the former file there are only its figures to compare.
    """
    if not former.object_key or not workspace.store.exists(former.object_key):
        return Loss(former.found, {}, max(0, former.found - found))
    with local_archive(workspace.store, former.object_key) as path, unpacked(path) as data:
        held = read_contents(data, former.dialect or None, former.object_key).messages
    vanished = {digest: held[digest] for digest in held.keys() - now.keys()}
    return Loss(len(held), vanished, len(vanished))


def refuse_loss(month: ListMonth, former: ArchiveRow, new: ArchiveRow, loss: Loss) -> None:
    """Refuse an archive that vanished, or lost more than a few per cent of its messages.

    Raises:
        StepError: with the figures and the remedy.
    """
    vanished = not new.sha256
    bearable = 0 if vanished else max(1, MAX_LOSS * loss.former)
    if loss.lost <= bearable:
        return
    what = "has vanished" if vanished else f"now has {new.found}"
    raise StepError(
        f"{month}: the archive held {former.found} messages and {what} "
        f"({loss.lost} lost, {loss.lost / loss.former:.0%}). Nothing was changed. {REMEDY}"
    )


def refuse_other_list(
    workspace: Workspace, month: ListMonth, former: ArchiveRow | None, new: ArchiveRow
) -> None:
    """Refuse an archive of another list: a file in the wrong folder, or a server's mix-up.

    Only the name before the first dot counts: lists move to other hosts. A name that the month's
    former archive has was accepted before.

    Raises:
        StepError: it names both lists.
    """
    usual = usual_list_ids(workspace.connection, month, MIN_MONTHS)
    accepted = [*usual, former.list_id] if former else usual
    if not new.list_id or not usual or _name(new.list_id) in map(_name, accepted):
        return
    raise StepError(
        f"{month}: the archive at {new.source} is of the list {new.list_id}; other months of "
        f"{month.list_name} are of {usual[0]}. Nothing was changed. {REMEDY}"
    )


def sweep_month(workspace: Workspace, month: ListMonth, keys: set[str]) -> None:
    """Delete those of a month's superseded files that its messages do not need and whose time is
    over.
    """
    needed = kept_former(workspace.connection, month)
    prefix = prefix_of_messages(workspace.connection, month)
    for key in keys - needed:
        if not (prefix and key.startswith(prefix)):
            workspace.store.delete(key)
            drop_former(workspace.connection, key)


def sweep_former_archives(workspace: Workspace) -> int:
    """Delete the former archives of all months whose time is over; return how many there were."""
    expired = expired_archives(workspace.connection)
    for key, month in expired.items():
        sweep_month(workspace, month, {key})
    return len(expired)


def _name(list_id: str) -> str:
    return list_id.partition(".")[0]
