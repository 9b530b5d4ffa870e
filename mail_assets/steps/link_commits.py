"""Link commits to the mail that decided them, again where commits or mail have changed.

A month of commits touches its commits. A month of patches touches the commits with one of its
patch-ids or titles, and those of its authors that have no mail of the same patch-id. A month of
messages touches the commits that name one of them. A run is in portions, each a transaction, and
the months are recorded at its end: a run that was killed begins again with what is left.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import psycopg

from mail_assets.mail.patches.links import LINKS_VERSION
from mail_assets.steps.outcome import Outcome, rate
from mail_assets.tables.commit_links import (
    CORPUS,
    Discussed,
    count_links,
    delete_orphans,
    digest_links,
    find_changed_months,
    find_links,
    find_touched,
    forget_noted,
    forget_sources,
    read_facts,
    read_noted,
    record_months,
    replace_links,
)
from mail_assets.tables.commits import CommitKey
from mail_assets.tables.partitions import Counts, State, locked, read_state, write_state
from mail_assets.workspace import Log

#: Commits of a portion, with their candidates some 20 MB.
PORTION = 500


def link_commits(
    connection: psycopg.Connection,
    repositories: Mapping[str, Discussed],
    log: Log,
    *,
    rebuild: bool = False,
) -> Outcome:
    """Make the links of all commits equal to what commits and mail say; write the difference."""
    began = time.monotonic()
    inputs = _inputs(repositories)
    with locked(connection, CORPUS):
        state = read_state(connection, CORPUS)
        if rebuild or state is None or state.inputs != inputs:
            forget_sources(connection)
        changed = find_changed_months(connection)
        noted = read_noted(connection)
        if state and not changed and not noted:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        touched = dict.fromkeys(noted.values())
        for month in changed:
            touched.update(dict.fromkeys(find_touched(connection, month)))
        written, deleted = _link(connection, [*touched], repositories, log)
        with connection.transaction():
            deleted += delete_orphans(connection, [*repositories])
            record_months(connection, changed)
            forget_noted(connection, noted)
            seconds = time.monotonic() - began
            counts: Counts = {
                **count_links(connection),
                "read": len(touched),
                "written": written,
                "deleted": deleted,
                "seconds": round(seconds, 3),
                "commits_per_second": rate(len(touched), seconds),
            }
            digest = digest_links(connection)
            write_state(connection, CORPUS, State(inputs, digest, counts), rewritten=True)
    return Outcome(counts, digest, bool(written or deleted))


def _link(
    connection: psycopg.Connection,
    touched: Sequence[CommitKey],
    repositories: Mapping[str, Discussed],
    log: Log,
) -> tuple[int, int]:
    written = deleted = 0
    for name, keys in _portions(touched):
        if name not in repositories:
            continue
        log(f"linking {len(keys)} commits of {name}")
        with connection.transaction():
            facts = read_facts(connection, keys)
            links = find_links(connection, [*facts.values()], repositories[name])
            changes = replace_links(connection, {key: links[key.sha] for key in facts})
        written, deleted = written + changes[0], deleted + changes[1]
    return written, deleted


def _portions(keys: Sequence[CommitKey]) -> Iterator[tuple[str, list[CommitKey]]]:
    for name in sorted({key.repository for key in keys}):
        left = (key for key in keys if key.repository == name)
        while some := [*islice(left, PORTION)]:
            yield name, some


def _inputs(repositories: Mapping[str, Discussed]) -> str:
    named = sorted((name, *about.lists, about.prefix) for name, about in repositories.items())
    return f"links {LINKS_VERSION} {named}"
