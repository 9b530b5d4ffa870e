"""Forget what a backup has forgotten, of which there are only digests."""

from mail_assets.steps.forget_files import OpenIndex
from mail_assets.steps.forget_messages import (
    ForgetReport,
    ForgetRequest,
    forget_elsewhere,
    forget_rows,
)
from mail_assets.tables.cut_messages import drop_reused
from mail_assets.tables.forgotten_left import find_names
from mail_assets.tables.removals import key_old_digests, read_forgotten
from mail_assets.tables.removed_messages import removed_months
from mail_assets.workspace import Workspace


def forget_again(workspace: Workspace, open_index: OpenIndex) -> ForgetReport:
    """Remove all that is here of what is in the list of removals, as forget_messages does.

    What the digests stand for is found by making those of every id and address that is here. Where
    it was killed, it is run again.

    Raises:
        ForgetKeyError: this machine has not the key of the digests.
    """
    key_old_digests(workspace.connection, workspace.forget_key)
    forgotten = read_forgotten(workspace.connection, workspace.forget_key)
    if forgotten.is_empty:
        return ForgetReport()
    for month in removed_months(workspace.connection):
        drop_reused(workspace.connection, month)
    names = find_names(workspace.connection, forgotten)
    request = ForgetRequest(names.message_ids, names.senders, "", "", hidden=names.hidden)
    rows = forget_rows(workspace, request)
    return forget_elsewhere(workspace, rows, forgotten, open_index)
