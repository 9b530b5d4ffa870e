"""Reads the patches of a mail with their diffs, and compares versions of a patch or series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from mail_assets.errors import NotFoundError
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.body import PatchFile, read_patch_files
from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.interdiff import (
    PatchComparison,
    Version,
    compare_patches,
    compare_series,
    version_of_mail,
)
from mail_assets.mail.patches.read import PatchMail, ReadPatch, read_diffs
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, read_value, statement
from mail_assets.reading.attachments import read_parsed_bytes
from mail_assets.reading.browsing import show_message
from mail_assets.reading.series import read_series
from mail_assets.sources.git import run_git
from mail_assets.sources.range_diff import compare_in_git
from mail_assets.sources.source import SourceError
from mail_assets.store.objects import ObjectStore
from mail_assets.text.untrusted import clean_line, show_turns


class NoPatchError(NotFoundError):
    """A message has no patch, or there is no such message or commit."""


def read_versions(
    connection: psycopg.Connection, store: ObjectStore, message_id: str
) -> list[Version]:
    """Return the patches of a message; for a cover letter, the patches that reply to it.

    If several texts claim an id, the one that arrived first is read.

    Raises:
        NoPatchError: there is no such message, or neither it nor a reply to it has a patch.
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
    """Return place -> patch for the patches of the message itself.

    Raises:
        NoPatchError: there is no such message.
        StoreError: a patch is attached, and the archive is gone.
    """
    own = _read(connection, store, message_id)
    return {one.patch.place: version_of_mail(one) for one in own if one.patch.kind == "patch"}


def find_previous(connection: psycopg.Connection, message_id: str) -> str:
    """Return the Message-ID of the version before that of a message, by its series.

    Raises:
        NoPatchError: no earlier version is known.
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
    attached: Sequence[PatchFile] = ()
    if any(file["is_patch"] for file in row["attachments"]):
        month = ListMonth(row["list"], row["month"])
        place = row["archive_offset"], row["archive_length"]
        raw = read_parsed_bytes(connection, store, month, *place)
        attached = read_patch_files(raw)
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


class Comparison(NamedTuple):
    """Result of comparing two versions; `why_not_git` is the reason if git did not compare them."""

    patches: Sequence[PatchComparison]
    why_not_git: str = ""


def compare_versions(
    old: Sequence[Version], new: Sequence[Version], folders: Iterable[Path]
) -> Comparison:
    """Compare two versions by `git range-diff` in the first suitable repository, else without git.

    `folders` are git directories. A repository is suitable if it has the files that the patches
    change.
    """
    why_not = "no repository is at hand"
    for folder in folders:
        try:
            pairs = compare_in_git(folder, old, new)
        except SourceError as error:
            why_not = clean_line(str(error))
            continue
        sides = (
            (
                None if pair.old is None else old[pair.old],
                None if pair.new is None else new[pair.new],
                pair,
            )
            for pair in pairs
        )
        made = [
            replace(compare_patches(before, after), by_git=tuple(map(show_turns, pair.lines)))
            for before, after, pair in sides
        ]
        return Comparison(made)
    return Comparison(compare_series(old, new), why_not)


def find_applied(connection: psycopg.Connection, patches: Sequence[Version]) -> list[str]:
    """Return the ids of the commits that mailed patches became, in their order, each once.

    The commits of any version of a patch count, in the repositories of lists.toml.

    Raises:
        NoPatchError: no commit is known for any of them.
    """
    found: dict[str, None] = {}
    for one in patches:
        series = read_series(connection, one.message_id)
        for change in series.change_of(one.message_id) if series else ():
            found |= dict.fromkeys(sha for x in change.versions for sha in x.commits)
    if not found:
        ids = ", ".join(dict.fromkeys(one.message_id for one in patches[:3]))
        raise NoPatchError(f"no commit of a repository in lists.toml is known to be from {ids}")
    return [*found]


def find_version(folders: Sequence[Path], name: str) -> Version:
    """Return a commit from the first of some git directories that has it.

    Raises:
        NoPatchError: none of them has it.
    """
    for folder in folders:
        try:
            return read_commit(folder, name)
        except NoPatchError:
            continue
    raise NoPatchError(
        f"there is no commit {name} in a repository of lists.toml, nor in a checkout here; name "
        "the folder of one with --git"
    )


def read_commit(folder: Path, name: str) -> Version:
    """Return a commit of a git directory as a version; git runs no external diff or textconv.

    Raises:
        NoPatchError: there is no repository with such a commit.
    """
    place = (f"--git-dir={folder}",)
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
