"""The rows of commits and commit_links: commits, candidate patches for links, and links.

Only the difference to the stored commits of a month and repository is written.
"""

import datetime as dt
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from mail_assets.errors import WrongInputError
from mail_assets.mail.patches.commits import Commit, find_named_mails
from mail_assets.mail.patches.links import (
    ArchivedMail,
    CommitFacts,
    Kind,
    Link,
    PatchFacts,
    link_commit,
)
from mail_assets.mail.patches.subjects import fold_title
from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import copy_rows, read_as, read_column, read_value, statement
from mail_assets.tables.partitions import Counts, Partition, digest_of

#: Raise it when the same commits would give other rows.
COMMITS_VERSION = "4"


class CommitKey(NamedTuple):
    """A commit of a repository of lists.toml."""

    repository: str
    sha: str


def _key_columns(keys: Iterable[CommitKey]) -> dict[str, list[str]]:
    some = [*keys]
    return {"repositories": [one.repository for one in some], "shas": [one.sha for one in some]}


class StoredCommit(NamedTuple):
    """A row of commits, for display."""

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
    """Return the ids of the stored commits of a month and repository."""
    values = {**month.columns, "repository": repository}
    return {*read_column(connection, statement("commits", "shas"), values)}


def insert_commits(
    connection: psycopg.Connection, month: ListMonth, repository: str, commits: Iterable[Commit]
) -> int:
    """Write new and changed commits, in a transaction; return their number.

    A commit stored under another month is moved: its repository may belong to another list now.
    """
    connection.execute(statement("commits", "stage"))
    rows = (_row(month, repository, commit) for commit in commits)
    copy_rows(connection, statement("commits", "copy"), rows)
    return connection.execute(statement("commits", "upsert")).rowcount


def delete_commits(connection: psycopg.Connection, repository: str, shas: Collection[str]) -> int:
    """Delete commits that are no longer part of the branch; return their number."""
    values = {"repository": repository, "shas": [*shas]}
    return connection.execute(statement("commits", "delete"), values).rowcount


def delete_other_repositories(
    connection: psycopg.Connection, month: ListMonth, repositories: Collection[str]
) -> int:
    """Delete the commits of a month that are of no repository in `repositories`."""
    values = {**month.columns, "repositories": [*repositories]}
    return connection.execute(statement("commits", "delete_others"), values).rowcount


def digest_month(connection: psycopg.Connection, month: ListMonth) -> tuple[str, int]:
    """Return a digest over the commits of a month, and their number."""
    with connection.cursor() as cursor:
        row = cursor.execute(statement("commits", "digest"), month.columns).fetchone()
    assert row is not None
    return row[0], row[1]


class AmbiguousCommitError(WrongInputError):
    """Several commits begin with the given digits."""


def find_commits(
    connection: psycopg.Connection, prefixes: Collection[str], repositories: Sequence[str]
) -> dict[str, CommitKey]:
    """Return prefix -> commit of some repositories.

    If several repositories share a commit, the first counts.

    Raises:
        AmbiguousCommitError: several commits begin with a prefix.
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
    """Return the stored commits among some keys."""
    rows = connection.execute(statement("commits", "read"), _key_columns(keys))
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


#: Links are not partitioned by month: a commit and its mail are often in different months.
CORPUS = Partition("commit_links", None)

#: Figures of a month of commits: all commits, their links, and commits by kind of link. The `by_`
#: figures add up to `linked`.
FIGURES = (
    *("commits", "links", "linked", "applied", "named_elsewhere"),
    *("by_trailer", "by_patch_id", "by_subject", "by_lines", "by_name"),
)

#: Asset -> the statement that finds the commits affected by a changed month of the asset.
_TOUCHED = {
    "commits": "commits_of_month",
    "patches": "commits_of_patches",
    "messages": "commits_of_messages",
}

#: Longest time between a mail and a commit of the same author with another subject.
LONGEST_WAY = dt.timedelta(days=400)
#: Longest time between a mail and a commit of another person with most of its lines.
OTHERS_WAY = dt.timedelta(days=60)

#: Most patches of one title, patch-id or thread compared with a commit: bots send thousands.
MOST_ALIKE = 1_000
#: Commits whose patches are found by author or line in one statement: each may have 200.
_OF_FILES = 50


class Discussed(NamedTuple):
    """The lists that discuss a repository, and the word that marks its patches in subjects."""

    lists: tuple[str, ...]
    prefix: str = ""


class SourceMonth(NamedTuple):
    """A month of commits, patches or messages, and the digest of its content, "" if it is gone."""

    asset: str
    month: ListMonth
    digest: str


class _Candidates(NamedTuple):
    """Patches that may be the sources of some commits, grouped by a shared value, oldest first."""

    by_patch_id: Mapping[str, list[PatchFacts]]
    by_title: Mapping[str, list[PatchFacts]]
    by_message: Mapping[str, list[PatchFacts]]
    by_thread: Mapping[str, list[PatchFacts]]
    by_date: Mapping[dt.datetime, list[PatchFacts]]
    archived: Mapping[str, ArchivedMail]  # the named ids in the archive

    def of(self, commit: CommitFacts) -> list[PatchFacts]:
        """Return the candidates of one commit, each once."""
        found: dict[tuple[str, int, int | None], PatchFacts] = {}
        groups = [
            self.by_patch_id.get(commit.patch_id, []) if commit.patch_id else [],
            self.by_title.get(commit.title_key, []) if commit.title_key else [],
            self.by_date.get(commit.authored_at, []),
        ]
        for one in commit.named:
            groups.append(self.by_message.get(one.message_id, []))
            if one.key:
                thread_id = self.archived.get(one.message_id, ArchivedMail()).thread_id
                groups.append(self.by_thread.get(thread_id, []))
        for group in groups:
            some = _find_nearest(group, commit.authored_at)
            found.update({(one.message_id, one.place, one.text): one for one in some})
        return [*found.values()]


def _find_nearest(group: list[PatchFacts], at: dt.datetime) -> list[PatchFacts]:
    place = bisect_left(group, at, key=lambda patch: patch.sent_at)
    first = max(0, min(place - MOST_ALIKE // 2, len(group) - MOST_ALIKE))
    return group[first : first + MOST_ALIKE]


def find_changed_months(connection: psycopg.Connection) -> list[SourceMonth]:
    """Return the months that have changed since they were linked."""
    rows = connection.execute(statement("commit_links", "changed_months")).fetchall()
    return [
        SourceMonth(asset, ListMonth(name, month), digest) for asset, name, month, digest in rows
    ]


def note_touched(connection: psycopg.Connection, changed: Collection[SourceMonth]) -> None:
    """Note the commits that changed months affect, and record these months, in a transaction."""
    connection.execute(statement("commit_links", "stage"))
    for one in changed:
        values = {**one.month.columns, "longest": LONGEST_WAY, "others_way": OTHERS_WAY}
        connection.execute(statement("commit_links", _TOUCHED[one.asset]), values)
    connection.execute(statement("commit_links", "note_touched"))
    columns = {
        "assets": [one.asset for one in changed],
        "of_lists": [one.month.list_name for one in changed],
        "of_months": [one.month.month for one in changed],
        "of_digests": [one.digest for one in changed],
    }
    connection.execute(statement("commit_links", "record_months"), columns)
    connection.execute(statement("commit_links", "forget_months"), columns)
    connection.execute(statement("commit_links", "forget_empty_months"), columns)


def forget_sources(connection: psycopg.Connection) -> None:
    """Delete the record of the sources of links, so that all links are made again."""
    connection.execute(statement("commit_links", "forget_sources"))


def has_changes(connection: psycopg.Connection) -> bool:
    """Return whether commits or mail have changed since links were made."""
    return bool(read_value(connection, statement("commit_links", "has_changes")))


def read_noted(connection: psycopg.Connection, most: int) -> dict[int, CommitKey]:
    """Return note number -> commit for at most `most` commits that must be linked again."""
    rows = connection.execute(statement("commit_links", "noted"), {"most": most}).fetchall()
    return {number: CommitKey(*key) for number, *key in rows}


def forget_noted(connection: psycopg.Connection, numbers: Collection[int]) -> None:
    """Delete the notes of commits that have been linked again."""
    connection.execute(statement("commit_links", "forget_noted"), {"numbers": [*numbers]})


def read_facts(
    connection: psycopg.Connection, keys: Sequence[CommitKey]
) -> dict[CommitKey, CommitFacts]:
    """Return the facts by which some stored commits are compared with patches."""
    found = {}
    for row in connection.execute(statement("commit_links", "facts"), _key_columns(keys)):
        repository, sha, *about, paths, lines, body, is_only, is_own = row
        named = tuple(find_named_mails(body))
        sets = (frozenset(paths), frozenset(lines))
        facts = CommitFacts._make((sha, *about, *sets, named, is_only, is_own))
        found[CommitKey(repository, sha)] = facts
    return found


def _read_candidates(
    connection: psycopg.Connection, commits: Collection[CommitFacts], about: Discussed
) -> _Candidates:
    """Return patches with the patch-id, title or date of a commit, and those near mail it names.

    Patches are from the lists that discuss the repository; a named mail may be on any list.
    Of a contested id only the text that arrived first counts.
    """
    named = {one.message_id for commit in commits for one in commit.named}
    rows = connection.execute(statement("commit_links", "archived"), {"ids": [*named]})
    archived = {row[0]: ArchivedMail(*row[1:]) for row in rows}
    values = {
        "patch_ids": [*{one.patch_id for one in commits} - {""}],
        "titles": [*{one.title_key for one in commits} - {""}],
        "dates": [*{one.authored_at for one in commits}],
        "ids": [*archived],
        "threads": [*{one.thread_id for one in archived.values()} - {""}],
        "lists": [*about.lists],
    }
    rows = connection.execute(statement("commit_links", "candidates"), values)
    patches = _make_patches(rows, about.prefix)
    groups: list[defaultdict[Any, list[PatchFacts]]] = [defaultdict(list) for _ in range(5)]
    for patch in sorted(patches, key=lambda one: (one.sent_at, one.message_id, one.place)):
        keys = (patch.patch_id, patch.title_key, patch.message_id, patch.thread_id, patch.sent_at)
        for group, key in zip(groups, keys, strict=True):
            group[key].append(patch)
    by_patch_id, by_title, by_message, by_thread, by_date = groups
    return _Candidates(by_patch_id, by_title, by_message, by_thread, by_date, archived)


def _read_patches_of_files(
    connection: psycopg.Connection, commits: Sequence[CommitFacts], about: Discussed
) -> Iterator[tuple[CommitFacts, list[PatchFacts]]]:
    values = {
        "emails": [one.author_email for one in commits],
        "oldest_dates": [one.committed_at - LONGEST_WAY for one in commits],
        "newest_dates": [one.committed_at + dt.timedelta(days=1) for one in commits],
        "names": [Jsonb([*{path.rpartition("/")[2] for path in one.paths}]) for one in commits],
        "lines": [min(one.lines) if one.is_own else None for one in commits],
        "others_way": OTHERS_WAY,
        "lists": [*about.lists],
    }
    rows = connection.execute(statement("commit_links", "of_files"), values)
    for number, some in groupby(rows, itemgetter(0)):
        yield commits[number - 1], _make_patches((row[1:] for row in some), about.prefix)


def find_links(
    connection: psycopg.Connection, commits: Sequence[CommitFacts], about: Discussed
) -> dict[str, list[Link]]:
    """Return commit id -> links for some commits of one repository; nothing is written.

    A commit without a mail of its patch-id or title is compared with all patches of its author, and
    with those of others that have one of its lines.
    """
    candidates = _read_candidates(connection, commits, about)
    archived = candidates.archived
    found = {one.sha: link_commit(one, candidates.of(one), archived) for one in commits}
    left = (
        one
        for one in commits
        if one.lines and not any(link.kind == Kind.applied for link in found[one.sha])
    )
    while some := [*islice(left, _OF_FILES)]:
        for commit, own in _read_patches_of_files(connection, some, about):
            found[commit.sha] = link_commit(commit, [*candidates.of(commit), *own], archived)
    return found


def read_links(
    connection: psycopg.Connection, keys: Sequence[CommitKey]
) -> dict[CommitKey, list[Link]]:
    """Return the stored links of some commits, best first."""
    rows = connection.execute(statement("commit_links", "links"), _key_columns(keys))
    found: defaultdict[CommitKey, list[Link]] = defaultdict(list)
    for name, sha, message_id, kind, evidence in rows:
        found[CommitKey(name, sha)].append(Link(message_id, Kind(kind), tuple(evidence)))
    return found


def replace_links(
    connection: psycopg.Connection, links: Mapping[CommitKey, Sequence[Link]]
) -> tuple[int, int]:
    """Make the links of some commits equal to `links`; return the rows written and deleted."""
    before = read_links(connection, [*links])
    changed = {key: some for key, some in links.items() if [*some] != before.get(key, [])}
    if not changed:
        return 0, 0
    old = {(key, x.message_id, x.kind) for key in changed for x in before.get(key, [])}
    new = {(key, x.message_id, x.kind) for key, some in changed.items() for x in some}
    connection.execute(statement("commit_links", "delete"), _key_columns(changed))
    rows = (
        (*key, link.message_id, link.kind.value, place, [*link.evidence])
        for key, some in changed.items()
        for place, link in enumerate(some)
    )
    copy_rows(connection, statement("commit_links", "copy"), rows)
    return sum(map(len, changed.values())), len(old - new)


def delete_orphans(connection: psycopg.Connection, repositories: Sequence[str]) -> int:
    """Delete the links of commits and repositories that are gone; return their number."""
    values = {"repositories": [*repositories]}
    return connection.execute(statement("commit_links", "delete_orphans"), values).rowcount


def find_linked(connection: psycopg.Connection) -> set[ListMonth]:
    """Return the months of commits that have been linked."""
    return {*read_as(connection, ListMonth, statement("commit_links", "linked_months"))}


def find_months(connection: psycopg.Connection, keys: Sequence[CommitKey]) -> set[ListMonth]:
    """Return the months of some commits."""
    query = statement("commit_links", "months_of_commits")
    return {*read_as(connection, ListMonth, query, _key_columns(keys))}


def read_months(connection: psycopg.Connection) -> dict[ListMonth, Counts]:
    """Return the figures of all months of commits, as of the last linking."""
    rows = connection.execute(statement("commit_links", "all_months")).fetchall()
    return {ListMonth(name, month): counts for name, month, counts, _ in rows}


def settle_months(
    connection: psycopg.Connection, months: Collection[ListMonth]
) -> dict[ListMonth, Counts]:
    """Count the links of some months of commits again; return the figures that have changed."""
    query = statement("commit_links", "settle_months")
    rows = connection.execute(query, columns_of(sorted(months))).fetchall()
    return {ListMonth(name, month): counts for name, month, counts in rows}


def sum_months(connection: psycopg.Connection) -> tuple[str, Counts]:
    """Return a digest over all links, and the summed figures of all months."""
    digests, sums = [], dict.fromkeys(FIGURES, 0)
    for name, month, counts, digest in connection.execute(statement("commit_links", "all_months")):
        digests += [name, month, digest]
        for figure in FIGURES:
            sums[figure] += counts.get(figure, 0)  # a damaged row may lack figures
    return digest_of(*digests), {**sums}


def _make_patches(rows: Iterable[tuple[Any, ...]], prefix: str) -> list[PatchFacts]:
    found: dict[tuple[str, int, int | None], PatchFacts] = {}
    for row in rows:
        message_id, place, *about, paths, lines, version, part, parts = row[:-7]
        source, flags, tags, thread, shas, text, is_sender = row[-7:]
        sets = (frozenset(paths), frozenset(lines))
        is_answer = source == "body" and "answer" in flags
        in_prefix = bool(prefix) and prefix.casefold() in tags
        signs = (is_answer, is_sender, thread or "", in_prefix, tuple(shas), text)
        patch = PatchFacts._make((message_id, place, *about, *sets, version, part, parts, *signs))
        found.setdefault((message_id, place, text), patch)
    return [*found.values()]
