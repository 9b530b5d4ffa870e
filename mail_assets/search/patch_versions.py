"""Versions of patches among hits: what became of each, and the one that stands for all of them.

The version that was applied stands for the others, else the newest one. In results grouped by
conversation the others are folded into it where they are in other threads (conversations.py): a
reader of the thread sees its own.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import Pending, statement
from mail_assets.search.response import PatchVersion
from mail_assets.tables.messages import utc

#: Characters of a commit's id in a line.
SHORT_SHA = 12


class _Version(NamedTuple):
    """A version of a patch as it is stored, and what became of it."""

    message_id: str
    number: int  # as written, 1 if none is
    state: str
    said_shas: Sequence[str]
    said_at: dt.datetime | None
    commits: Sequence[str] | None
    committed_at: dt.datetime | None
    is_cover_applied: bool | None

    @property
    def is_applied(self) -> bool:
        return bool(self.commits) or self.state == "applied" or bool(self.is_cover_applied)

    @property
    def shas(self) -> tuple[str, ...]:
        """The commits: those that are stored, else those that a mail names."""
        return tuple(self.commits or (self.said_shas if self.state == "applied" else ()))

    @property
    def applied_at(self) -> dt.datetime | None:
        return self.committed_at or (self.said_at if self.state == "applied" else None)


def ask_patches(
    connection: psycopg.Connection, message_ids: Sequence[str]
) -> Pending[dict[str, PatchVersion]]:
    """Ask for the patches of some mails, each as a version with what became of it."""
    asked = connection.execute(
        statement("search_patches", "page_patches"), {"message_ids": [*message_ids]}
    )

    def build(rows: Iterable[tuple[object, ...]]) -> dict[str, PatchVersion]:
        series: dict[str, tuple[str | None, str]] = {}
        versions: dict[str, list[_Version]] = defaultdict(list)
        for asked_id, is_shown, series_id, kind, *columns in rows:
            mail = str(asked_id)
            series[mail] = str(series_id) if is_shown else None, str(kind)
            versions[mail].append(_Version(*columns))  # type: ignore[arg-type]
        return {mail: _describe(mail, *series[mail], some) for mail, some in versions.items()}

    return Pending(asked.fetchall).then(build)


def _describe(
    message_id: str, series_id: str | None, kind: str, versions: Sequence[_Version]
) -> PatchVersion:
    """Return a version of a patch; `versions` are all of them, oldest first."""
    place = next(at for at, one in enumerate(versions) if one.message_id == message_id)
    applied = [at for at, one in enumerate(versions) if one.is_applied]
    latest = applied[-1] if applied else len(versions) - 1
    numbers = [one.number for one in versions]
    if numbers != sorted(numbers):  # RFC v2 came before PATCH v1
        numbers = [*range(1, len(versions) + 1)]
    one = versions[place]
    state = "applied" if one.is_applied else one.state
    if applied and place < latest and state == "open":
        state = "superseded"
    return PatchVersion(
        series_id=series_id,
        kind="cover" if kind == "cover" else "patch",
        version=numbers[place],
        of=max(numbers),
        state=state,
        shas=one.shas,
        applied_at=utc(one.applied_at) if one.is_applied and one.applied_at else None,
        latest_id=versions[latest].message_id,
        latest=numbers[latest],
        line=_say(numbers, place, latest, versions, state),
    )


def _say(
    numbers: Sequence[int], place: int, latest: int, versions: Sequence[_Version], state: str
) -> str:
    said = f"v{numbers[place]} of {max(numbers)}, "
    if state == "applied":
        return said + _say_applied(versions[place])
    if place == latest or (state != "superseded" and not versions[latest].is_applied):
        return said + state
    if place < latest:
        is_again = numbers[place] == numbers[latest]
        return f"{said}superseded by {'a repost' if is_again else f'v{numbers[latest]}'}"
    return f"{said}{state}; v{numbers[latest]} was {_say_applied(versions[latest])}"


def _say_applied(version: _Version) -> str:
    said = "applied"
    if version.shas:
        said += f" as {version.shas[0][:SHORT_SHA]}"
        said += f" and {len(version.shas) - 1} more" if len(version.shas) > 1 else ""
    return f"{said} on {utc(version.applied_at)[:10]}" if version.applied_at else said


class FoundVersion(NamedTuple):
    """A mail that has a version of a patch; of one `patch` the greatest stands for all.

    `is_named`: the query names this version.
    """

    patch: tuple[str, int]
    is_named: bool
    is_applied: bool
    posting: int
    message_id: str


def find_versions(
    connection: psycopg.Connection, message_ids: Sequence[str], *, every: bool = False
) -> dict[str, FoundVersion]:
    """Return the mails among some that have versions of one patch, by their ids.

    With `every` those versions too that are not among these mails.
    """
    name = "versions_of" if every else "found_versions"
    rows = connection.execute(
        statement("search_patches", name), {"message_ids": [*message_ids]}
    ).fetchall()
    return {
        message_id: FoundVersion((series_id, change), False, is_applied, posting, message_id)
        for message_id, series_id, change, posting, is_applied in rows
    }
