"""The patches of a mail with their diffs, for comparing versions: one patch, or a whole series."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from mail_assets.errors import NotFoundError
from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.attachments import read_patch_files
from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.interdiff import Version, version_of_mail
from mail_assets.mail.patches.read import AttachedPatch, PatchMail, ReadPatch, read_diffs
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.reading.attachments import read_parsed_bytes
from mail_assets.reading.records import show_message
from mail_assets.sources.git import run_git
from mail_assets.sources.source import SourceError
from mail_assets.store.objects import ObjectStore


class NoPatchError(NotFoundError):
    """A message has no patch, or there is no such message or commit."""


def read_versions(
    connection: psycopg.Connection, store: ObjectStore, message_id: str
) -> list[Version]:
    """Return the patches of a message; of a cover letter the patches that answer it.

    Of several texts under an id the one that arrived first is read.

    Raises:
        NoPatchError: there is no such message, or neither it nor an answer to it has a patch.
        StoreError: a patch is attached, and the archive is gone.
    """
    own = _read(connection, store, message_id)
    found = [one for one in own if one.patch.kind == "patch"]
    for cover in own if not found else ():
        asked = {"message_id": message_id, "version": cover.patch.version}
        for part in read_column(connection, statement("patches", "parts"), asked):
            found += _read(connection, store, part)
    if not found:
        raise NoPatchError(f"message {message_id} has no patch, and no series begins with it")
    return [version_of_mail(one) for one in found]


def read_patches(
    connection: psycopg.Connection, store: ObjectStore, message_id: str
) -> dict[int, Version]:
    """Return the patches that a message itself has, by their places in it.

    Raises:
        NoPatchError: there is no such message.
        StoreError: a patch is attached, and the archive is gone.
    """
    own = _read(connection, store, message_id)
    return {one.patch.place: version_of_mail(one) for one in own if one.patch.kind == "patch"}


def find_previous(connection: psycopg.Connection, message_id: str) -> str:
    """Return the Message-ID of the version before that of a message, by its series.

    Raises:
        NoPatchError: none is known.
    """
    asked = {"message_id": message_id}
    found = read_value(connection, statement("patches", "previous"), asked)
    if not found:
        raise NoPatchError(f"no earlier version of {message_id} is known; name both messages")
    return str(found)


def _read(connection: psycopg.Connection, store: ObjectStore, message_id: str) -> list[ReadPatch]:
    copies = show_message(connection, message_id)
    if not copies:
        raise NoPatchError(f"no message {message_id}")
    return read_diffs(_mail(connection, store, copies[0]))


def _mail(connection: psycopg.Connection, store: ObjectStore, row: Mapping[str, Any]) -> PatchMail:
    attached: list[AttachedPatch] = []
    if any(file["is_patch"] for file in row["attachments"]):
        month = ListMonth(row["list"], row["month"])
        place = row["archive_offset"], row["archive_length"]
        raw = read_parsed_bytes(connection, store, month, *place)
        attached = [AttachedPatch(*file) for file in read_patch_files(raw)]
    return PatchMail(
        row["message_id"],
        row["subject"],
        row["from_name"],
        row["from_email"],
        row["sent_at"],
        tuple(row["in_reply_to"]),
        row["body_text"],
        [Segment(*part) for part in row["segments"]],
        attached,
    )


def read_commit(folder: Path, name: str) -> Version:
    """Return a commit of a repository as a version; git runs nothing that the repository names.

    Raises:
        NoPatchError: the folder has no repository with such a commit.
    """
    place = ("-C", str(folder))
    wanted = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    form = ("--no-ext-diff", "--no-textconv", "--no-notes", "-M", "--format=%s%x00")
    try:
        commit = run_git([*place, "rev-parse", *wanted]).decode("ascii").strip()
        shown = run_git([*place, "show", *form, "--end-of-options", commit])
    except SourceError as error:
        raise NoPatchError(f"there is no commit {name} in {folder}: {error}") from error
    title, _, diff = shown.partition(b"\0")
    return Version(
        f"commit {commit[:12]}", "", title.decode(errors="replace"), read_diff(_decode(diff))
    )


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
