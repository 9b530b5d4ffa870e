"""Link commits to the mail that decided them, again where commits or mail have changed.

A month of commits touches its commits. A month of patches touches the commits with one of its
patch-ids or titles, and those of its authors that have no mail of the same patch-id. A month of
messages touches the commits that name one of them. A run is in portions, each a transaction, and
the months are recorded at its end: a run that was killed begins again with what is left.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.patches.links import LINKS_VERSION
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome, rate
from mail_assets.tables.commit_links import (
    CORPUS,
    Discussed,
    begin_months,
    delete_orphans,
    find_changed_months,
    find_linked,
    find_links,
    find_months,
    find_touched,
    forget_noted,
    forget_sources,
    read_facts,
    read_months,
    read_noted,
    record_months,
    replace_links,
    settle_months,
    sum_months,
)
from mail_assets.tables.commits import CommitKey
from mail_assets.tables.partitions import (
    Counts,
    State,
    locked,
    look_up_by_index,
    read_state,
    write_state,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.workspace import Workspace

#: Commits of a portion, with their candidates some 20 MB.
PORTION = 500


def link_commits(
    workspace: Workspace,
    repositories: Mapping[str, Discussed],
    *,
    rebuild: bool = False,
    report: Callable[[Mapping[ListMonth, Counts]], None] = lambda months: None,
) -> Outcome:
    """Make the links of all commits equal to what commits and mail say; write the difference.

    `report` gets the figures of the months of commits that have changed, before they are committed:
    so none is left out. With `rebuild` it gets all of them.
    """
    began = time.monotonic()
    connection, inputs = workspace.connection, _inputs(repositories)
    with locked(connection, CORPUS):
        state = read_state(connection, CORPUS)
        is_new = rebuild or state is None or state.inputs != inputs
        if is_new:
            forget_sources(connection)
        changed = find_changed_months(connection)
        noted = read_noted(connection)
        digest, _ = sum_months(connection)
        if state and not is_new and not changed and not noted and digest == state.digest:
            return Outcome({**state.counts, "written": 0, "deleted": 0}, digest, False)
        begin_months(connection, changed)
        touched = dict.fromkeys(noted.values())
        with connection.transaction():
            look_up_by_index(connection)
            for month in changed:
                touched.update(dict.fromkeys(find_touched(connection, month)))
        work = _link(workspace, [*touched], repositories)
        months = work.months | {one.month for one in changed if one.asset == "commits"}
        with connection.transaction():
            deleted = work.deleted
            if is_new:
                deleted += delete_orphans(connection, [*repositories])
            if is_new or (state and digest != state.digest):  # figures of months were lost
                months |= {*read_months(connection)} | find_linked(connection)
            look_up_by_index(connection)
            others = settle_months(connection, months)
            record_months(connection, changed)
            forget_noted(connection, noted)
            seconds = time.monotonic() - began
            digest, figures = sum_months(connection)
            counts: Counts = {
                **figures,
                "read": len(touched),
                "written": work.written,
                "deleted": deleted,
                "seconds": round(seconds, 3),
                "commits_per_second": rate(len(touched), seconds),
            }
            write_state(connection, CORPUS, State(inputs, digest, counts), rewritten=True)
            report(read_months(connection) if is_new else others)
    return Outcome(counts, digest, bool(work.written or deleted))


class _Work(NamedTuple):
    """Rows that portions have written and deleted, and the months of the commits they are of."""

    written: int
    deleted: int
    months: set[ListMonth]


def _link(
    workspace: Workspace, touched: Sequence[CommitKey], repositories: Mapping[str, Discussed]
) -> _Work:
    connection = workspace.connection
    forgotten = read_forgotten(connection, workspace.forget_key)
    written = deleted = 0
    months: set[ListMonth] = set()
    for name, keys in _portions(touched):
        if name not in repositories:
            continue
        workspace.log(f"linking {len(keys)} commits of {name}")
        with connection.transaction():
            look_up_by_index(connection)
            facts = read_facts(connection, keys)
            links = find_links(connection, [*facts.values()], repositories[name])
            kept = {
                key: [one for one in links[key.sha] if not forgotten.hides_id(one.message_id)]
                for key in facts
            }
            changes = replace_links(connection, kept)
            months |= find_months(connection, keys)
        written, deleted = written + changes[0], deleted + changes[1]
    return _Work(written, deleted, months)


def _portions(keys: Sequence[CommitKey]) -> Iterator[tuple[str, list[CommitKey]]]:
    for name in sorted({key.repository for key in keys}):
        left = (key for key in keys if key.repository == name)
        while some := [*islice(left, PORTION)]:
            yield name, some


def _inputs(repositories: Mapping[str, Discussed]) -> str:
    named = sorted((name, *about.lists, about.prefix) for name, about in repositories.items())
    return f"links {LINKS_VERSION} {named}"
