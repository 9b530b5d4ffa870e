"""The rows of commits: those of a month and a repository, written as a difference, and read."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.errors import WrongInputError
from mail_assets.mail.patches.commits import Commit, find_named_mails
from mail_assets.mail.patches.subjects import fold_title
from mail_assets.month import ListMonth
from mail_assets.postgres.statements import read_column, statement

#: Raise it when the same commits would give other rows.
COMMITS_VERSION = "3"


class CommitKey(NamedTuple):
    """A commit of a repository of lists.toml."""

    repository: str
    sha: str


def key_columns(keys: Iterable[CommitKey]) -> dict[str, list[str]]:
    """Return the columns of some keys, as parameters of a statement."""
    some = [*keys]
    return {"repositories": [one.repository for one in some], "shas": [one.sha for one in some]}


class StoredCommit(NamedTuple):
    """A row as people read it."""

    key: CommitKey
    parents: list[str]
    author_name: str
    author_email: str
    authored_at: Any
    committer_name: str
    committer_email: str
    committed_at: Any
    subject: str
    body: str
    trailers: list[list[str]]
    files: list[dict[str, Any]]
    added: int
    removed: int
    patch_id: str
    picked_from: list[str]
    reverts: list[str]
    flags: list[str]


def read_shas(connection: psycopg.Connection, month: ListMonth, repository: str) -> set[str]:
    """Return the ids of the stored commits of a month of a repository."""
    values = {**month.columns, "repository": repository}
    return {*read_column(connection, statement("commits", "shas"), values)}


def insert_commits(
    connection: psycopg.Connection, month: ListMonth, repository: str, commits: Iterable[Commit]
) -> int:
    """Write new commits, in a transaction; return their number.

    A commit that was in another month moves: the list of its repository may be another now.
    """
    connection.execute(statement("commits", "stage"))
    with connection.cursor() as cursor, cursor.copy(statement("commits", "copy")) as copy:
        for commit in commits:
            copy.write_row(_row(month, repository, commit))
    return connection.execute(statement("commits", "upsert")).rowcount


def delete_commits(connection: psycopg.Connection, repository: str, shas: Collection[str]) -> int:
    """Delete commits that are no longer part of the branch; return their number."""
    values = {"repository": repository, "shas": [*shas]}
    return connection.execute(statement("commits", "delete"), values).rowcount


def delete_other_repositories(
    connection: psycopg.Connection, month: ListMonth, repositories: Collection[str]
) -> int:
    """Delete the commits of a month of repositories that lists.toml no longer names."""
    values = {**month.columns, "repositories": [*repositories]}
    return connection.execute(statement("commits", "delete_others"), values).rowcount


def digest_month(connection: psycopg.Connection, month: ListMonth) -> tuple[str, int]:
    """Return a digest over the commits of a month, and their number."""
    with connection.cursor() as cursor:
        row = cursor.execute(statement("commits", "digest"), month.columns).fetchone()
    assert row is not None
    return row[0], row[1]


class AmbiguousCommitError(WrongInputError):
    """Several commits begin with the digits that were given."""


def find_commits(
    connection: psycopg.Connection, prefixes: Collection[str], repositories: Sequence[str]
) -> dict[str, CommitKey]:
    """Return the commits of some repositories whose ids begin with some digits, by the digits.

    Of several repositories that share a commit the first counts.

    Raises:
        AmbiguousCommitError: several commits begin so.
    """
    values = {"prefixes": [*prefixes], "repositories": [*repositories]}
    found: defaultdict[str, list[CommitKey]] = defaultdict(list)
    for prefix, *key in connection.execute(statement("commits", "by_prefixes"), values):
        found[prefix].append(CommitKey(*key))
    for prefix, keys in found.items():
        if len(shas := sorted({key.sha for key in keys})) > 1:
            some = ", ".join(sha[: len(prefix) + 4] for sha in shas[:5])
            what = f"{prefix} begins several commits: {some}"
            raise AmbiguousCommitError(f"{what}; write more digits")
    return {prefix: keys[0] for prefix, keys in found.items()}


def read_commits(
    connection: psycopg.Connection, keys: Sequence[CommitKey]
) -> dict[CommitKey, StoredCommit]:
    """Return some commits."""
    rows = connection.execute(statement("commits", "read"), key_columns(keys))
    found = (StoredCommit(CommitKey(name, sha), *rest) for name, sha, *rest in rows)
    return {one.key: one for one in found}


def _row(month: ListMonth, repository: str, commit: Commit) -> tuple[object, ...]:
    return (
        *(month.list_name, month.month, repository, commit.sha, [*commit.parents]),
        *(commit.author_name, commit.author_email, commit.authored_at),
        *(commit.committer_name, commit.committer_email, commit.committed_at),
        *(commit.subject, fold_title(commit.subject), commit.body),
        Jsonb([[*trailer] for trailer in commit.trailers]),
        [one.message_id for one in find_named_mails(commit.body)],
        *([*commit.picked_from], [*commit.reverts]),
        Jsonb([asdict(file) for file in commit.files]),
        *(sum(file.added for file in commit.files), sum(file.removed for file in commit.files)),
        *(commit.patch_id, [*commit.lines], [*commit.flags]),
    )
