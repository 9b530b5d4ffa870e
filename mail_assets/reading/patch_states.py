"""Describes the state of a mail's patches in a line: "v3 of 5, superseded by v5, which is open".

reading/series.py reads the state of each version; this module puts it into words.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from mail_assets.month import utc
from mail_assets.postgres.statements import Pending
from mail_assets.reading.series import SILENT_DAYS, Change, SeriesPatchView, SeriesView, ask_changes

#: Digits of a commit id in a line.
SHORT = 12
#: Most commits that a line names.
_NAMED = 3

_STATES = {
    "open": "open",
    "silent": f"open, without an answer for {SILENT_DAYS} days",
    "applied": "applied",
    "superseded": "superseded",
    "rejected": "rejected",
    "withdrawn": "withdrawn",
}


@dataclass(frozen=True)
class PatchState:
    """State of the patches of a mail.

    label: version and part, such as "v2 3/5".
    newest: number of the newest version of the same change.
    state: state of the mail's own version, "mixed" if its patches differ.
    words: the description of the state.
    commits: the commits, in the repositories of lists.toml, that any version became.
    deciding_id: the mail of the version that was applied, else of the newest version.
    """

    message_id: str
    series_id: str
    kind: str
    label: str
    version: int
    newest: int
    state: str
    words: str
    commits: tuple[str, ...]
    decided_at: str | None
    deciding_id: str


def ask_states(
    connection: psycopg.Connection, ids: Collection[str]
) -> Pending[dict[str, PatchState]]:
    """Send one statement for the states of those mails that have patches."""

    def describe(series: Mapping[str, SeriesView]) -> dict[str, PatchState]:
        found = {one: describe_patch(series[one], one) for one in series}
        return {one: state for one, state in found.items() if state}

    return ask_changes(connection, ids).then(describe)


def describe_patch(series: SeriesView, message_id: str) -> PatchState | None:
    """Return the state of a mail's patches; None for a mail that only quotes or suggests a diff."""
    changes = [one for one in series.change_of(message_id) if not _is_suggestion(one)]
    if not changes:
        return None
    own = [_find(one, message_id) for one in changes]
    words = _cover_words(series, changes[0], own[0])
    if not words:
        said = [_change_words(*one) for one in zip(changes, own, strict=True)]
        words = said[0] if len({*said}) == 1 else _count(one.state for one in own)
        if len(own) > 1 and len({*said}) == 1:
            words = f"{len(own)} patches: {words}"
    states = {one.state for one in own}
    deciding = changes[0].deciding
    commits = dict.fromkeys(sha for one in changes for sha in one.deciding.commits)
    moment = deciding.committed_at or deciding.said_at if deciding.state == "applied" else None
    return PatchState(
        message_id,
        series.series_id,
        own[0].kind,
        own[0].label,
        own[0].version,
        max(one.version for one in changes[0].own),
        own[0].state if len(states) == 1 else "mixed",
        words,
        tuple(commits),
        utc(moment) if moment else None,
        deciding.message_id,
    )


def say_change(change: Change) -> str:
    """Return words for the state of a change, by the version that decides it."""
    one = change.deciding
    is_numbered = max(x.version for x in (*change.own, one)) > 1
    return f"{f'v{one.version}: ' if is_numbered else ''}{say_state(one)}"


def say_state(one: SeriesPatchView) -> str:
    """Return words for the state of one version."""
    if one.state != "applied":
        return f"{_STATES[one.state]}{_by(one)}{_doubt(one)}{_contested(one)}"
    named = [sha[:SHORT] for sha in one.shas[:_NAMED]]
    if len(one.shas) > _NAMED:
        named.append(f"{len(one.shas) - _NAMED} more")
    commits = f" as {', '.join(named)}" if named else ""
    moment = one.committed_at or one.said_at
    return (
        f"applied{commits}{f' on {_day(moment)}' if moment else ''}{_doubt(one)}{_contested(one)}"
    )


def _is_suggestion(change: Change) -> bool:
    return len(change.versions) == 1 and change.versions[0].is_remark


def _find(change: Change, message_id: str) -> SeriesPatchView:
    return next(one for one in change.versions if one.message_id == message_id)


def _change_words(change: Change, own: SeriesPatchView) -> str:
    newest, deciding = change.newest, change.deciding
    label = _label(change, own)
    if own is deciding:
        return f"{label}, {say_state(own)}{_others(change)}"
    if own.by_stranger and deciding is newest:
        verb = "is" if deciding.state in ("open", "silent") else "was"
        theirs = f"{_name(newest, own)} of its author {verb} {say_state(newest)}"
        return f"{label}, {say_state(own)}; {theirs}"
    if own.state in ("applied", "rejected", "withdrawn"):
        said = say_state(own)
    elif own is newest:
        said = "sent after"
        return f"{label}, {said} {_name(deciding, own)}, which was {say_state(deciding)}"
    else:
        said = f"superseded by {_name(newest, own)}"
    if deciding is not newest:
        return f"{label}, {said}; {_name(deciding, own)} was {say_state(deciding)}"
    joint = ", which" if said.startswith("superseded") else f"; {_name(newest, own)}"
    verb = "is" if deciding.state in ("open", "silent") else "was"
    return f"{label}, {said}{joint} {verb} {say_state(deciding)}{_others(change)}"


def _others(change: Change) -> str:
    """Return words for the newest version by a stranger, if it is newer and open."""
    last = change.versions[-1]
    if not last.by_stranger or last is change.deciding or last.state not in ("open", "silent"):
        return ""
    return f"; v{last.version} by somebody else is open"


def _label(change: Change, own: SeriesPatchView) -> str:
    if own.by_stranger and change.newest is not own:
        return f"v{own.version} by somebody else"
    newest = max(one.version for one in change.own)
    return f"v{own.version} of {newest}" if newest > 1 else "v1"


def _name(other: SeriesPatchView, own: SeriesPatchView) -> str:
    """Return the name of another version: its number, or its day if numbers are ambiguous."""
    is_higher, is_later = other.version > own.version, other.sent_at > own.sent_at
    if other.version != own.version and is_higher == is_later:
        return f"v{other.version}"
    by = " by somebody else" if other.is_taken_over else ""
    return f"that of {_day(other.sent_at)}{by}"


def _cover_words(series: SeriesView, change: Change, own: SeriesPatchView) -> str:
    """Return words for a cover letter, by the states of its parts; "" for anything else."""
    posting: Sequence[SeriesPatchView] = next(
        some for some in series.postings if any(one is own or one == own for one in some)
    )
    parts = {one.change for one in posting if one.kind == "patch"}
    if own.kind != "cover" or not parts:
        return ""
    numbers = {one.number: one for one in series.changes}
    states = [numbers[number].deciding.state for number in parts]
    newest = change.newest
    after = "" if own is newest or own == newest else f", superseded by {_name(newest, own)}"
    return f"cover letter of {_label(change, own)}{after}; its changes: {_count(states)}"


def _count(states: Iterable[str]) -> str:
    counts = Counter("open" if one == "silent" else one for one in states)
    return ", ".join(f"{count} {state}" for state, count in counts.most_common())


def _by(one: SeriesPatchView) -> str:
    if one.state not in ("rejected", "withdrawn") or not one.said_at:
        return ""
    return f" on {_day(one.said_at)}"


def _doubt(one: SeriesPatchView) -> str:
    return f", says somebody who {one.doubt}" if one.doubt else ""


def _contested(one: SeriesPatchView) -> str:
    return ", contested id" if one.is_contested else ""


def _day(moment: dt.datetime) -> str:
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d}"
