"""Summarize the threads that have changed.

Triggers note a thread that grew, split, merged or lost a message. A thread whose content is
unchanged gets no new summary. Each portion is read, summarized, and written if its threads have not
changed meanwhile. No lock is held during a request to a model, and a killed run keeps its finished
portions. A thread that fails stays noted for the next run. That run starts after the threads that
this run has tried, so that threads that always fail do not block the others.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psycopg

from mail_assets.processes.workers import WorkerPool
from mail_assets.summaries.summary import (
    Maker,
    MakerStoppedError,
    MessageText,
    Summary,
    SummaryError,
)
from mail_assets.tables.partitions import Counts, State, digest_of, locked, read_state, write_state
from mail_assets.tables.thread_summaries import (
    CORPUS,
    NewSummary,
    ThreadContent,
    change_all_threads,
    count_changes,
    count_summaries,
    delete_summaries,
    drop_orphans,
    find_nth_change,
    lock_for_summaries,
    note_changes,
    read_changes,
    read_contents,
    read_known,
    read_messages,
    take_changes,
    write_summaries,
)
from mail_assets.workspace import Log, Outcome, rate

#: Changed threads per read.
LOOKED_AT = 500

#: Characters of mail per batch for one process: a twentieth of a portion, so that all processes
#: end at about the same time.
BATCH = 200_000


def summarize_threads(
    connection: psycopg.Connection,
    maker: Maker,
    log: Log,
    workers: WorkerPool | None = None,
    *,
    rebuild: bool = False,
) -> Outcome:
    """Make a summary of each thread that has changed; `note` says why some were left out.

    With `rebuild`, a maker with rules makes all summaries again and writes those that differ. A
    chat model makes only missing ones, because its answers cost money and differ each time.

    If the maker is stateless, `workers` make the summaries, else this process does. The new digest
    is computed from the old one and the changes: reading all rows would cost more.
    """
    began = time.monotonic()
    with locked(connection, CORPUS):
        known = _read_state(connection, maker, rebuild)
        run = _Run(connection, maker, log, workers or WorkerPool(), rebuild and maker.verbatim)
        run.work_off(int(known.counts.get("tried", 0)))
        if not run.work["changed"] and known.counts:
            unchanged: Counts = {**known.counts, "changed": 0, "made": 0}
            return Outcome(unchanged, known.digest, False)
        seconds = time.monotonic() - began
        counts: Counts = {
            "summaries": count_summaries(connection),
            "left": count_changes(connection),
            "tried": count_changes(connection, run.reached),
            **{name: run.work[name] for name in ("changed", "made", "failed", "sentences")},
            **maker.usage._asdict(),
            "seconds": round(seconds, 3),
            "threads_per_second": rate(run.work["made"], seconds),
        }
        digest = digest_of(known.digest, *run.digests) if run.digests else known.digest
        # rewritten: threads that were left out wait for the next run and do not trigger the sensor
        write_state(connection, CORPUS, State(maker.fingerprint, digest, counts), rewritten=True)
    return Outcome(counts, digest, bool(run.work["made"]), run.reason)


def _read_state(connection: psycopg.Connection, maker: Maker, rebuild: bool) -> State:
    """Return the state of this maker; if another maker ran last, note all threads as changed."""
    with connection.transaction():
        state = read_state(connection, CORPUS)
        if state and state.inputs == maker.fingerprint and not rebuild:
            return state
        change_all_threads(connection)
        if rebuild:
            drop_orphans(connection)
        if state and state.inputs == maker.fingerprint:
            return state
        new = State(maker.fingerprint, state.digest if state else "", {})
        write_state(connection, CORPUS, new)
    return new


@dataclass
class _Run:
    """Work of one run; `reason` says why threads were left out, "" if none was.

    With `again` summaries of unchanged threads are made again and compared. `reached` is the last
    thread that was tried, in reading order.
    """

    connection: psycopg.Connection
    maker: Maker
    log: Log
    workers: WorkerPool
    again: bool = False
    work: Counter[str] = field(default_factory=Counter)
    digests: list[str] = field(default_factory=list)
    reason: str = ""
    reached: str = ""
    is_stopped: bool = False

    def work_off(self, tried: int) -> None:
        """Process all noted threads; the first `tried`, which the last run tried, come last."""
        first = find_nth_change(self.connection, tried)
        self._work_through(first, None)
        if first:
            self._work_through("", first)

    def _work_through(self, after: str, last: str | None) -> None:
        if not self.is_stopped:
            self.reached = after
        while not self.is_stopped:
            threads = read_changes(self.connection, self.reached, last, LOOKED_AT)
            if not threads:
                return
            self._work_off(threads)
            if not self.is_stopped:
                self.reached = threads[-1]
            self.log(f"summarized {self.work['made']} of {self.work['changed']} changed threads")

    def _work_off(self, threads: Sequence[str]) -> None:
        contents = read_contents(self.connection, threads)
        known = {} if self.again else read_known(self.connection, threads)
        changed = [
            contents[x]
            for x in threads
            if x in contents and known.get(x) != (self.maker.fingerprint, contents[x].content_hash)
        ]
        wanted = {content.thread_id for content in changed}
        self.work["changed"] += len(threads)
        self._settle([x for x in threads if x not in wanted], contents, {})
        for portion in _cut(changed, self.maker.portion):
            if self.is_stopped:
                return
            made = self._make(portion)
            self._settle([*made], contents, made)
            if not self.is_stopped:
                self.reached = portion[-1].thread_id

    def _make(self, portion: Sequence[ThreadContent]) -> dict[str, NewSummary]:
        contents = {content.thread_id: content for content in portion}
        messages = read_messages(self.connection, [*contents])
        stateless = self.maker.stateless
        batches = (
            [(x.thread_id, messages[x.thread_id]) for x in batch if x.thread_id in messages]
            for batch in _cut(portion, BATCH if stateless else 0)
        )
        workers = self.workers if stateless else WorkerPool()
        made: dict[str, NewSummary] = {}
        try:
            for _, results in workers.map(_summarize, self.maker, batches):
                for thread_id, result in results:
                    if isinstance(result, SummaryError):
                        self.work["failed"] += 1
                        self._leave(f"{thread_id}: {result}")
                    else:
                        made[thread_id] = NewSummary(contents[thread_id], result)
        except MakerStoppedError as error:
            self.is_stopped = True
            self._leave(str(error))
        return made

    def _settle(
        self,
        threads: Sequence[str],
        contents: dict[str, ThreadContent],
        made: dict[str, NewSummary],
    ) -> None:
        """Write the summaries of threads that have not changed meanwhile; keep others noted."""
        if not threads:
            return
        connection = self.connection
        try:
            with connection.transaction():
                lock_for_summaries(connection)
                take_changes(connection, threads)
                now = read_contents(connection, threads)
                same = {x for x in threads if x in now and now[x] == contents.get(x)}
                note_changes(connection, [x for x in now if x not in same])
                delete_summaries(connection, [x for x in threads if x not in now])
                written = {x: new for x, new in made.items() if x in same}
                changed = write_summaries(connection, self.maker, written) if written else set()
                written = {x: new for x, new in written.items() if x in changed}
        except psycopg.errors.LockNotAvailable:
            self._leave(f"{len(threads)} threads are being changed by another run")
            return
        self.work["made"] += len(written)
        self.work["sentences"] += sum(len(new.summary.sentences) for new in written.values())
        self.digests += [digest_of(x, new.content.content_hash) for x, new in written.items()]

    def _leave(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.log(f"left for the next run: {reason}")


def _summarize(
    maker: Maker, threads: Sequence[tuple[str, Sequence[MessageText]]]
) -> list[tuple[str, Summary | SummaryError]]:
    made: list[tuple[str, Summary | SummaryError]] = []
    for thread_id, messages in threads:
        try:
            made.append((thread_id, maker.summarize(messages)))
        except SummaryError as error:
            made.append((thread_id, error))
    return made


def _cut(contents: Sequence[ThreadContent], most: int) -> Iterator[list[ThreadContent]]:
    """Yield contents in portions of at most `most` characters, or of one thread."""
    portion: list[ThreadContent] = []
    characters = 0
    for content in contents:
        if portion and characters + content.characters > most:
            yield portion
            portion, characters = [], 0
        portion.append(content)
        characters += content.characters
    if portion:
        yield portion
