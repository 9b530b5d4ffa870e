"""Counts of searches for the audit, without queries and clients.

A thread writes the counts every minute over its own connection. Searches never wait for it or fail
because of it.
"""

import datetime as dt
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from mail_assets.postgres.programs import PostgresError
from mail_assets.search.language.expression import Field, leaves
from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request
from mail_assets.tables.search_audit import HITS, MILLISECONDS, SearchKind, round_up
from mail_assets.web.responses import find_status

logger = logging.getLogger(__name__)

#: Seconds between two writes of the counts.
EVERY = 60.0
#: Most kinds of searches in memory while the database fails; further kinds are not counted.
MAX_KINDS = 10_000
#: Seconds that `close` waits for the last counts.
LAST_SECONDS = 5.0

Counts = Mapping[SearchKind, int]


@dataclass
class Watched:
    """A running search; the caller of `watch` fills it in."""

    request: Request | None = None
    mode: str = ""
    hits: int = 0


class SearchAudit:
    """Counts searches of any thread; `write` stores the counts, and keeps them if it fails.

    Only names that `lists` returns are counted.
    """

    def __init__(
        self,
        lists: Callable[[], Collection[str]],
        write: Callable[[Counts], None],
        every: float = EVERY,
    ) -> None:
        self._lists, self._write, self._every = lists, write, every
        self._counts: Counter[SearchKind] = Counter()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._write_now_and_then, daemon=True)
        self._thread.start()

    @contextmanager
    def watch(self, surface: str) -> Iterator[Watched]:
        """Count a search of a surface when it ends."""
        watched, began, status = Watched(), time.perf_counter(), 200
        try:
            yield watched
        except Exception as error:
            status = find_status(error)
            raise
        finally:
            ms = (time.perf_counter() - began) * 1000
            self._count(describe_search(surface, watched, self._lists(), ms, status))

    def write_counts(self) -> None:
        """Store the counts; counts that cannot be stored are kept, and the error is logged once."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            self._write(counts)
            self._failed = False
        except (psycopg.Error, PostgresError) as error:
            with self._lock:
                self._counts.update(counts)
            if not self._failed:
                logger.warning("cannot store the counts of searches; searches go on: %s", error)
            self._failed = True

    def close(self) -> None:
        """Store the last counts, within LAST_SECONDS."""
        self._closing.set()
        self._thread.join(LAST_SECONDS)

    def _count(self, kind: SearchKind) -> None:
        with self._lock:
            if kind in self._counts or len(self._counts) < MAX_KINDS:
                self._counts[kind] += 1

    def _write_now_and_then(self) -> None:
        while not self._closing.wait(self._every):
            self.write_counts()
        self.write_counts()


def describe_search(
    surface: str, watched: Watched, lists: Collection[str], ms: float, status: int
) -> SearchKind:
    """Return the kind under which a search is counted; it has known names only, never values."""
    hour = dt.datetime.now(dt.UTC).replace(minute=0, second=0, microsecond=0)
    fields: list[Field] = []
    mode = watched.mode
    if watched.request:
        parsed = parse_request(watched.request)
        fields = [leaf for leaf in leaves(parsed.node) if isinstance(leaf, Field)]
        mode = str(parsed.request.mode)
    return SearchKind(
        hour=hour,
        surface=surface,
        mode=mode,
        fields=tuple(sorted({field.name for field in fields})),
        lists=tuple(sorted({str(one.value) for one in fields if one.name == "list"} & {*lists})),
        hits=round_up(watched.hits, HITS),
        ms=round_up(ms, MILLISECONDS),
        status=status,
    )
