"""Read the commits of one month of the repositories that a list discusses.

A repository's commits are stored in the months of the first list that discusses it, so that a run
of a month updates both mail and commits. Only commits that are not stored are read. Commits that
are no longer on the branch, because its history was rewritten, are deleted and reported.
"""

import time
from collections.abc import Mapping

import psycopg

from mail_assets.month import ListMonth
from mail_assets.sources.repository import CommitSource
from mail_assets.tables.commits import (
    COMMITS_VERSION,
    delete_commits,
    delete_other_repositories,
    digest_month,
    insert_commits,
    read_shas,
)
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    State,
    digest_of,
    locked,
    read_state,
    read_states,
    write_state,
)
from mail_assets.workspace import Outcome, Workspace, rate

ASSET = "commits"


def read_month_commits(
    workspace: Workspace,
    month: ListMonth,
    sources: Mapping[str, CommitSource],
    *,
    rebuild: bool = False,
) -> Outcome:
    """Bring the commits of a month up to date with the repositories, in one transaction.

    `sources` are the repositories of the month's list. With `rebuild` all are read again.

    Raises:
        SourceError: a repository cannot be read.
    """
    began = time.monotonic()
    connection, partition = workspace.connection, Partition(ASSET, month)
    with locked(connection, partition):
        histories = {name: source.history() for name, source in sources.items()}
        inputs = _commit_inputs({n: h.version(month.month) for n, h in histories.items()})
        state = read_state(connection, partition)
        if state and state.inputs == inputs and not rebuild:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, state.digest, False)
        is_new_version = state is not None and not state.inputs.startswith(_version())
        written = deleted = 0
        notes = []
        with connection.transaction():
            for name, source in sources.items():
                wanted = histories[name].months.get(month.month, [])
                known = read_shas(connection, month, name)
                missing = [one for one in wanted if one not in known or rebuild or is_new_version]
                written += insert_commits(connection, month, name, source.read(missing))
                if lost := known.difference(wanted):
                    deleted += delete_commits(connection, name, lost)
                    notes.append(
                        f"{len(lost)} commits are no longer on the branch of {name}, whose history "
                        f"was rewritten: {', '.join(sorted(one[:12] for one in lost)[:5])}"
                    )
            deleted += delete_other_repositories(connection, month, [*sources])
            digest, commits = digest_month(connection, month)
            seconds = time.monotonic() - began
            counts: Counts = {
                "commits": commits,
                "written": written,
                "deleted": deleted,
                "seconds": round(seconds, 3),
                "commits_per_second": rate(written, seconds),
            }
            changed = bool(written or deleted)
            if commits or state:  # a month that never had commits gets no record
                new = State(inputs, digest, counts)
                write_state(connection, partition, new, rebuild and changed)
    return Outcome(counts, digest, changed, "; ".join(notes))


def find_months_behind(
    connection: psycopg.Connection,
    sources: Mapping[str, Mapping[str, CommitSource]],
    *,
    all: bool = False,
) -> dict[ListMonth, str]:
    """Return the months whose commits are out of date, with their new inputs.

    `sources` are the repositories of each list. With `all` all months are returned.

    Raises:
        SourceError: a repository cannot be read.
    """
    states = read_states(connection, [*sources])
    behind = {}
    for list_name, some in sources.items():
        histories = {name: source.history() for name, source in some.items()}
        stored = {
            m.month for m, made in states.items() if m.list_name == list_name and ASSET in made
        }
        for month in sorted(stored.union(*(history.months for history in histories.values()))):
            inputs = _commit_inputs({n: h.version(month) for n, h in histories.items()})
            one = ListMonth(list_name, month)
            state = states.get(one, {}).get(ASSET)
            if all or state is None or state.inputs != inputs:
                behind[one] = inputs
    return behind


def _commit_inputs(versions: Mapping[str, str]) -> str:
    return f"{_version()} {digest_of(*(f'{n} {v}' for n, v in sorted(versions.items()) if v))}"


def _version() -> str:
    return f"commits {COMMITS_VERSION}"
