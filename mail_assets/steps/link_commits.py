"""Link commits to the mail that discusses them, where commits or mail have changed.

A changed month of commits touches its commits. A changed month of patches touches the commits with
one of its patch-ids or titles, and, if they have no mail of the same patch-id, those of its authors
and those with the first line of a patch. A changed month of messages touches the commits that name
one of them. A run notes the touched commits, then links them in portions, one transaction each.
After a killed run the next one continues with the remaining notes.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from mail_assets.mail.patches.links import LINKS_VERSION
from mail_assets.month import ListMonth
from mail_assets.tables.commits import (
    CORPUS,
    CommitKey,
    Discussed,
    delete_orphans,
    find_changed_months,
    find_linked,
    find_links,
    find_months,
    forget_noted,
    forget_sources,
    has_changes,
    note_touched,
    read_facts,
    read_months,
    read_noted,
    replace_links,
    settle_months,
    sum_months,
)
from mail_assets.tables.partitions import (
    Counts,
    State,
    locked,
    look_up_by_index,
    read_state,
    write_state,
)
from mail_assets.tables.removals import read_forgotten
from mail_assets.workspace import Outcome, Workspace, rate

#: Receives the figures of months.
Report = Callable[[Mapping[ListMonth, Counts]], None]

#: Commits per portion; with their candidates some 20 MB.
PORTION = 500


def link_commits(
    workspace: Workspace,
    repositories: Mapping[str, Discussed],
    *,
    rebuild: bool = False,
    report: Report = lambda months: None,
) -> Outcome:
    """Bring the links of all commits up to date with commits and mail; write only differences.

    `report` receives the figures of the months whose links changed, with `rebuild` of all months.
    It is called before the commit, so that a killed run leaves out no month.
    """
    connection, inputs = workspace.connection, _inputs(repositories)
    with locked(connection, CORPUS):
        state = read_state(connection, CORPUS)
        is_new = rebuild or state is None or state.inputs != inputs
        digest, _ = sum_months(connection)
        is_lost = state is not None and digest != state.digest
        if state and not (is_new or is_lost or has_changes(connection)):
            return Outcome({**state.counts, "written": 0, "deleted": 0}, digest, False)
        run = _Run(workspace, repositories, report)
        run.note_changes(is_new=is_new, is_lost=is_lost)
        while noted := read_noted(connection, PORTION):
            run.link(noted)
        if is_new:
            months = read_months(connection)
            report({month: months[month] for month in months.keys() - run.reported})
    return run.outcome()


class _Run:
    """One run. After each of its transactions another run can continue."""

    def __init__(
        self, workspace: Workspace, repositories: Mapping[str, Discussed], report: Report
    ) -> None:
        self.reported: set[ListMonth] = set()
        self._workspace, self._connection = workspace, workspace.connection
        self._repositories, self._report = repositories, report
        self._forgotten = read_forgotten(self._connection, workspace.forget_key)
        self._began = time.monotonic()
        self._work = Counter(read=0, written=0, deleted=0)
        self._state = State("", "", {})

    def note_changes(self, *, is_new: bool, is_lost: bool) -> None:
        """Note the commits that changed months touch; with `is_new` every month counts as changed.

        `is_lost`: the recorded figures do not match the stored ones; those of all months are
        counted again.
        """
        connection = self._connection
        with connection.transaction():
            if is_new:
                forget_sources(connection)
                self._work["deleted"] += delete_orphans(connection, [*self._repositories])
            look_up_by_index(connection)
            note_touched(connection, find_changed_months(connection))
            months = {*read_months(connection)} | find_linked(connection)
            self._settle(months if is_lost else ())

    def link(self, noted: Mapping[int, CommitKey]) -> None:
        connection, keys = self._connection, [*dict.fromkeys(noted.values())]
        self._workspace.log(f"linking {len(keys)} commits")
        with connection.transaction():
            look_up_by_index(connection)
            forget_noted(connection, noted)
            for name in {key.repository for key in keys} & self._repositories.keys():
                self._link([key for key in keys if key.repository == name], name)
            self._work["read"] += len(keys)
            self._settle(find_months(connection, keys))

    def outcome(self) -> Outcome:
        changed = bool(self._work["written"] or self._work["deleted"])
        return Outcome(self._state.counts, self._state.digest, changed)

    def _link(self, keys: Sequence[CommitKey], repository: str) -> None:
        facts = read_facts(self._connection, keys)
        about = self._repositories[repository]
        links = find_links(self._connection, [*facts.values()], about)
        hides = self._forgotten.hides_id
        kept = {key: [x for x in links[key.sha] if not hides(x.message_id)] for key in facts}
        written, deleted = replace_links(self._connection, kept)
        self._work.update(written=written, deleted=deleted)

    def _settle(self, months: Collection[ListMonth]) -> None:
        others = settle_months(self._connection, months)
        digest, figures = sum_months(self._connection)
        seconds = time.monotonic() - self._began
        counts: Counts = {
            **figures,
            **self._work,
            "seconds": round(seconds, 3),
            "commits_per_second": rate(self._work["read"], seconds),
        }
        self._state = State(_inputs(self._repositories), digest, counts)
        write_state(self._connection, CORPUS, self._state, rewritten=True)
        self._report(others)
        self.reported.update(others)


def _inputs(repositories: Mapping[str, Discussed]) -> str:
    named = sorted((name, *about.lists, about.prefix) for name, about in repositories.items())
    return f"links {LINKS_VERSION} {named}"
