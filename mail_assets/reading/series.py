"""Reads series of patches for display: the versions and the state of each change."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from mail_assets.errors import NotFoundError, name_some
from mail_assets.postgres.statements import Pending, read_column, statement
from mail_assets.text.lookalikes import find_lookalikes

#: Days after which an open patch without a reply by others is silent: neither accepted nor
#: rejected.
SILENT_DAYS = 60
_SILENCE = dt.timedelta(days=SILENT_DAYS)

#: Mails whose series are read by one statement.
_AT_ONCE = 500

#: States of a change that nobody has decided on.
OPEN = frozenset({"open", "silent"})
#: Description of a person without standing.
NO_STANDING = "commits nothing here and is not known for decisions on patches"
#: Most numbers of versions or parts that a sentence names.
_NAMED = 10


class NoVersionError(NotFoundError):
    """A patch has no version with a number, or none before or after another."""


class SeriesPatchView(NamedTuple):
    """A patch or cover letter of a series.

    state: open, silent, applied, superseded, rejected or withdrawn.
    reason_id: the mail that states this, in the words `said`, or the version that supersedes it.
    is_contested: other texts claim the Message-ID; this is the one that arrived first.
    has_standing: whether the sender of that mail decides on patches here; None without such a mail.
    commits: the commits of the repositories of lists.toml that the patch became.
    shas: these commits, and those that the mail names.
    """

    series_id: str
    change: int
    posting: int
    message_id: str
    place: int
    kind: str
    title: str
    version: int
    part: int | None
    parts: int | None
    list: str
    sent_at: dt.datetime
    from_name: str
    from_email: str
    previous_id: str | None
    evidence: Sequence[str]
    is_taken_over: bool
    by_stranger: bool
    is_newest: bool
    is_remark: bool
    is_contested: bool
    state: str
    reason_id: str | None
    said: str | None
    said_by: str | None
    said_from: str | None
    said_at: dt.datetime | None
    has_standing: bool | None
    shas: Sequence[str]
    is_answered: bool
    known_until: dt.datetime | None  # newest mail of its list
    commits: Sequence[str]
    committer_name: str | None
    committed_at: dt.datetime | None

    @property
    def doubt(self) -> str:
        """Description of the person who states the state, if that person has no standing."""
        return NO_STANDING if self.has_standing is False and not self.commits else ""

    @property
    def label(self) -> str:
        """Version and part, as "v2 3/5"."""
        part = "" if self.part is None else f" {self.part}/{self.parts or '?'}"
        return f"v{self.version}{part}"

    def as_json(self) -> dict[str, Any]:
        """Return a document."""
        return {
            **{name: value for name, value in self._asdict().items() if name != "series_id"},
            "sent_at": self.sent_at.isoformat(),
            "said_at": self.said_at.isoformat() if self.said_at else None,
            "committed_at": self.committed_at.isoformat() if self.committed_at else None,
        }


class Change(NamedTuple):
    """The versions of one patch, or of the cover letter, oldest first."""

    number: int
    versions: Sequence[SeriesPatchView]

    @property
    def own(self) -> Sequence[SeriesPatchView]:
        """The versions without those by strangers; all versions if there are no others."""
        return [one for one in self.versions if not one.by_stranger] or self.versions

    @property
    def newest(self) -> SeriesPatchView:
        """The newest version of `own`."""
        return self.own[-1]

    @property
    def deciding(self) -> SeriesPatchView:
        """The version that decides the state: the last applied one, else the newest."""
        applied = [one for one in self.versions if one.state == "applied"]
        return applied[-1] if applied else self.newest

    @property
    def shas(self) -> list[str]:
        """The commits of all versions, each once."""
        return [*dict.fromkeys(sha for one in self.versions for sha in one.shas)]

    @property
    def gaps(self) -> list[int]:
        """The numbers below the newest version's that no known version has."""
        known = {one.version for one in self.versions}
        newest = max(one.version for one in self.own)
        return [number for number in range(1, min(newest, 1_000)) if number not in known]

    def find_version(self, number: int) -> SeriesPatchView:
        """Return the version with a number; the last one if it was sent several times.

        Raises:
            NoVersionError: there is no version with this number.
        """
        found = [one for one in self.own if one.version == number]
        found = found or [one for one in self.versions if one.version == number]
        if not found:
            known = _name_versions(one.version for one in self.versions)
            raise NoVersionError(f"no v{number} of this patch is known; there are: {known}")
        return found[-1]

    def find_unknown(self) -> Iterator[str]:
        """Yield sentences about what the archive does not say about a change."""
        one = self.deciding
        if gaps := _name_versions(self.gaps):
            yield f"{gaps}: not in this archive, or joined by nothing that is certain"
        for doubtful in (x for x in self.versions if x.is_contested):
            yield f"whether {doubtful.label} is genuine: several texts claim its Message-ID"
        if one.state == "open":
            yield "what became of it: no mail and no commit says so"
        elif one.state == "silent":
            yield f"what became of it: nobody answered for {SILENT_DAYS} days; that is no consent"
        elif one.state == "applied" and not self.shas:
            yield "as which commit it was applied: no mail says so, and no repository here has it"
        elif one.state == "applied" and not any(x.commits for x in self.versions):
            yield "whether a repository has the commit: it is only named by mail"
        if one.doubt:
            yield f"whether it was {one.state}: the person who says so {one.doubt}"

    def as_json(self) -> dict[str, Any]:
        """Return a document."""
        return {
            "change": self.number,
            "title": self.newest.title,
            "state": self.deciding.state,
            "shas": self.shas,
            "versions": [one.as_json() for one in self.versions],
        }


class SeriesView(NamedTuple):
    """A series: its postings, oldest first, and its changes.

    `series_id` names the series: it is its first message that may be shown.
    """

    series_id: str
    postings: Sequence[Sequence[SeriesPatchView]]
    changes: Sequence[Change]

    @property
    def title(self) -> str:
        """Title of the newest cover letter, else of the newest patch.

        If somebody passes on patches of others, together with more patches, the title is that of
        the newest posting by the original people of a change with which the series began.
        """
        newest = self.postings[-1]
        if any(one.is_taken_over for some in self.postings for one in some):
            first = {one.change for one in self.postings[0]}
            own = [
                some
                for some in self.postings
                if any(one.change in first and not one.is_taken_over for one in some)
            ]
            newest = (own or self.postings)[-1]
        return next((one.title for one in newest if one.kind == "cover"), newest[0].title)

    @property
    def namesakes(self) -> set[str]:
        """The names that several people have, or that look like the name of another."""
        some = [one for posting in self.postings for one in posting]
        people = [(one.from_name, one.from_email.lower()) for one in some]
        people += [(one.said_by or "", (one.said_from or "").lower()) for one in some]
        return find_lookalikes(people)

    def change_of(self, message_id: str) -> list[Change]:
        """Return the changes that a mail has versions of."""
        return [
            one for one in self.changes if any(x.message_id == message_id for x in one.versions)
        ]

    def find_unknown(self, message_id: str) -> list[str]:
        """Return sentences about what the archive does not say about a mail's patches."""
        changes = self.change_of(message_id)
        found = [x for change in changes for x in change.find_unknown()]
        mails = {one.message_id: one for some in self.postings for one in some}
        for change in changes:
            first = change.versions[0]
            if before := mails.get(first.previous_id or ""):
                label = f"{before.label} of {before.sent_at:%Y-%m-%d}, “{before.title}”"
                reason = " and ".join(first.evidence)
                found.append(
                    f"whether {first.label} is a version of {label}: only {reason} says so"
                )
        for some in self.postings:
            count = max((one.parts or 0 for one in some), default=0)
            known = {one.part for one in some}
            missing = [part for part in range(1, min(count, 1_000) + 1) if part not in known]
            if missing:
                numbers = name_some(map(str, missing), _NAMED)
                what = "part" if len(missing) == 1 else "parts"
                label = f"v{some[0].version} of {some[0].sent_at:%Y-%m-%d}"
                found.append(f"{what} {numbers} of {count} of {label}: not in this archive")
        return [*dict.fromkeys(found)]

    def as_json(self) -> dict[str, Any]:
        """Return a document."""
        return {
            "series_id": self.series_id,
            "title": self.title,
            "postings": [
                {
                    "posting": number,
                    "version": some[0].version,
                    "message_ids": [*dict.fromkeys(one.message_id for one in some)],
                    "sent_at": some[0].sent_at.isoformat(),
                    "from_name": some[0].from_name,
                }
                for number, some in enumerate(self.postings)
            ],
            "changes": [one.as_json() for one in self.changes],
        }


def _name_versions(numbers: Iterable[int]) -> str:
    return name_some((f"v{number}" for number in sorted({*numbers})), _NAMED)


def read_series(
    connection: psycopg.Connection, message_id: str, now: dt.datetime | None = None
) -> SeriesView | None:
    """Return the series of a mail, None if it has no patch."""
    return read_many(connection, [message_id], now).get(message_id)


def read_many(
    connection: psycopg.Connection, ids: Collection[str], now: dt.datetime | None = None
) -> dict[str, SeriesView]:
    """Return Message-ID -> series for those mails that have patches."""
    return _ask_series(connection, ids, now, whole=True).read()


def ask_changes(
    connection: psycopg.Connection, ids: Collection[str], now: dt.datetime | None = None
) -> Pending[dict[str, SeriesView]]:
    """Send a statement for the series of mails, with only the changes that the mails contain.

    A cover letter comes with the changes of its patches.
    """
    return _ask_series(connection, ids, now, whole=False)


def _ask_series(
    connection: psycopg.Connection, ids: Collection[str], now: dt.datetime | None, *, whole: bool
) -> Pending[dict[str, SeriesView]]:
    moment = now or dt.datetime.now(dt.UTC)
    asked = connection.cursor(row_factory=dict_row).execute(
        statement("series_reading", "series"), {"ids": [*ids], "whole": whole, "now": moment}
    )
    return Pending(asked.fetchall).then(lambda rows: _view_series(rows, ids))


def _view_series(rows: Iterable[Mapping[str, Any]], ids: Collection[str]) -> dict[str, SeriesView]:
    by_series: dict[str, list[SeriesPatchView]] = defaultdict(list)
    for row in rows:
        view = _with_commits(SeriesPatchView(**row))
        waited = (view.known_until or view.sent_at) - view.sent_at
        if view.state == "open" and not view.is_answered and waited > _SILENCE:
            view = view._replace(state="silent")  # its list has newer mail, but no reply to it
        by_series[view.series_id].append(view)
    found: dict[str, SeriesView] = {}
    for some in by_series.values():
        series = _make_series([*_leave_out_hidden(some)])
        found |= dict.fromkeys((one.message_id for one in some), series)
    return {one: found[one] for one in ids if one in found}


def find_pair(
    connection: psycopg.Connection, message_id: str, old: int | None, new: int | None
) -> tuple[str, str]:
    """Return the Message-IDs of two versions of a mail's first patch, by their numbers.

    By default the new version is the newest, and the old version is the one before the new one.

    Raises:
        NoVersionError: the mail is no patch, or there are no such versions.
    """
    change = _read_change(connection, message_id)
    after = change.newest if new is None else change.find_version(new)
    if old is not None:
        before = change.find_version(old)
    else:
        versions = [one for one in change.versions if one in change.own or one is after]
        place = versions.index(after)
        if not place:
            raise NoVersionError(f"no version before {after.label} of this patch is known")
        before = versions[place - 1]
    if before.message_id == after.message_id:
        raise NoVersionError(f"{before.label} is the only version that is named; name two")
    return before.message_id, after.message_id


def find_numbered(connection: psycopg.Connection, message_id: str, number: int) -> str:
    """Return the Message-ID of a version of a mail's first patch.

    Raises:
        NoVersionError: the mail is no patch, or there is no such version.
    """
    return _read_change(connection, message_id).find_version(number).message_id


def _read_change(connection: psycopg.Connection, message_id: str) -> Change:
    series = read_series(connection, message_id)
    if series is None:
        raise NoVersionError(f"message {message_id} is no patch: no version of it is known")
    return series.change_of(message_id)[0]


def _with_commits(view: SeriesPatchView) -> SeriesPatchView:
    """Return a patch that became a commit with the state "applied", even if mails say otherwise.

    The reason is removed if it is a mail that says otherwise, or a mail by somebody without
    standing that names none of the commits.
    """
    if not view.commits:
        return view
    others = [x for x in view.shas if not any(sha.startswith(x) for sha in view.commits)]
    is_right = view.state == "applied" and (view.has_standing or len(others) < len(view.shas))
    if not is_right:
        view = view._replace(reason_id=None, said=None, said_by=None, said_from=None, said_at=None)
    named = others if view.has_standing else []
    has_standing = view.has_standing if is_right else None
    shas = [*view.commits, *named]
    return view._replace(state="applied", has_standing=has_standing, shas=shas)


def _leave_out_hidden(patches: Sequence[SeriesPatchView]) -> Iterator[SeriesPatchView]:
    """Yield patches, in their order, without references to messages that may not be shown."""
    shown = {one.message_id for one in patches}
    own = {one.change for one in patches if not one.by_stranger}
    for one in patches:
        view = one
        if view.previous_id is not None and view.previous_id not in shown:
            is_known = not view.by_stranger or view.change not in own
            view = view._replace(previous_id=None, evidence=[])
            if is_known:
                view = view._replace(is_taken_over=False, by_stranger=False)
        yield view


def _make_series(patches: Sequence[SeriesPatchView]) -> SeriesView:
    postings: dict[int, list[SeriesPatchView]] = defaultdict(list)
    changes: dict[int, list[SeriesPatchView]] = defaultdict(list)
    for one in patches:
        postings[one.posting].append(one)
        changes[one.change].append(one)
    for some in postings.values():
        some.sort(key=lambda one: (one.kind != "cover", one.part or 0, one.message_id, one.place))
        _settle_cover(some, changes)
    return SeriesView(
        patches[0].series_id,
        [postings[number] for number in sorted(postings)],
        [Change(number, changes[number]) for number in sorted(changes)],
    )


def _settle_cover(
    posting: list[SeriesPatchView], changes: dict[int, list[SeriesPatchView]]
) -> None:
    """Set the version of a cover letter to that of its patches, and "applied" if all were."""
    cover, *parts = posting
    if cover.kind != "cover":
        return
    settled = cover._replace(version=max(one.version for one in posting))
    is_whole = len(parts) == cover.parts and all(one.state == "applied" for one in parts)
    if is_whole and cover.state in OPEN:
        shas = [*dict.fromkeys(sha for one in parts for sha in one.shas)]
        settled = settled._replace(state="applied", shas=shas)
    versions = changes[cover.change]
    versions[versions.index(cover)] = posting[0] = settled


def describe_mails(
    connection: psycopg.Connection, ids: Sequence[str], now: dt.datetime | None = None
) -> Iterator[dict[str, Any]]:
    """Yield for each mail the versions of its patches, oldest first, their state and commits.

    For mail without a patch `state` is None, and `shas` are the commits that it says were applied.
    """
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        series = ask_changes(connection, some, now).read()
        said: dict[str, list[str]] = defaultdict(list)
        query = statement("series_reading", "commits_said")
        without = [one for one in some if one not in series]
        for message_id, shas in connection.execute(query, {"ids": without}):
            said[message_id] += shas
        for one in some:
            changes = series[one].change_of(one) if one in series else []
            versions = sorted(
                (x for change in changes for x in change.versions), key=lambda x: x.posting
            )
            shas = [sha for change in changes for sha in change.shas] or said.get(one, [])
            yield {
                "message_id": one,
                "versions": [*dict.fromkeys(x.message_id for x in versions)],
                "state": changes[0].deciding.state if changes else None,
                "shas": [*dict.fromkeys(shas)],
            }


def read_open(
    connection: psycopg.Connection, list_name: str, now: dt.datetime | None = None
) -> Iterator[Change]:
    """Yield the open and silent changes of a list, without cover letters, newest first.

    A change is open until it is applied, rejected or withdrawn. Its newest version decides.
    """
    query = statement("series_reading", "open")
    ids = read_column(connection, query, {"list": list_name})
    seen: set[tuple[str, int]] = set()
    found = []
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for mail, series in ask_changes(connection, some, now).read().items():
            for change in series.change_of(mail):
                key = series.series_id, change.number
                newest = change.deciding
                if key not in seen and newest.kind == "patch" and newest.state in OPEN:
                    found.append(change)
                seen.add(key)
    return iter(sorted(found, key=lambda one: one.newest.sent_at, reverse=True))
