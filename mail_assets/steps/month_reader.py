"""Read the messages of an archive: those whose bytes are known are not parsed again."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from mmap import mmap
from typing import IO, NamedTuple

from mail_assets.mail.archive.mbox import RawMessage, split_mbox
from mail_assets.mail.message.content_hash import find_lossy_copies
from mail_assets.processes.workers import WorkerPool
from mail_assets.steps.message_rows import Facts, Reading, parse_batch

#: What one process is given at a time: whichever is reached first.
BATCH_MESSAGES, BATCH_BYTES = 100, 1 << 20


class Found(NamedTuple):
    """A message of an archive: its place, the digest of its bytes, and what is known of it.

    Without facts it cannot be read, for a reason.
    """

    offset: int
    length: int
    suspicious: bool
    digest: bytes
    facts: Facts | None = None
    reason: str = ""


class Archive(NamedTuple):
    """The decompressed bytes of an archive, read as often as it takes, and what errors call it."""

    data: bytes | mmap
    name: str


class MonthReader:
    """Reads the decompressed archive of one month; `found` are its messages in order.

    Without an archive nothing is found. `known` are the facts of messages by the digest of their
    bytes. The drafts of the rows of what was parsed go to the file `drafts`.
    """

    def __init__(
        self,
        archive: Archive | None,
        reading: Reading,
        known: Mapping[bytes, Facts],
        workers: WorkerPool,
        drafts: IO[bytes],
    ) -> None:
        self._archive, self._reading, self._known = archive, reading, known
        self._workers, self._drafts = workers, drafts
        #: Ordinal -> where its draft is.
        self._places: dict[int, tuple[int, int]] = {}
        self.found: list[Found] = []

    @property
    def facts(self) -> list[Facts | None]:
        """What is known of each message, in order."""
        return [one.facts for one in self.found]

    @property
    def parsed(self) -> Collection[int]:
        """The ordinals of the messages that have a draft."""
        return self._places.keys()

    def read(self, report_progress: Callable[[int], None]) -> None:
        """Find all messages, and parse those that are not known.

        Raises:
            ArchiveError: the file is damaged.
            WorkerError: a process that parses has ended.
        """
        self._parse(self._unknown(report_progress))

    def parse(self, ordinals: Collection[int]) -> None:
        """Parse messages although they are known."""
        if not ordinals:
            return
        wanted = frozenset(ordinals)
        self._parse((n, raw) for n, raw in self._raws() if n in wanted)

    def find_lossy(self, ordinals: Collection[int]) -> frozenset[str]:
        """Return the content hashes of those messages that are lossy copies of others of them."""
        if not ordinals:
            return frozenset()
        wanted = frozenset(ordinals)
        raws = (raw.raw for n, raw in self._raws() if n in wanted)
        return find_lossy_copies(raws, self._reading.dialect)

    def draft(self, ordinal: int) -> bytes:
        """Return the draft of a row."""
        start, length = self._places[ordinal]
        self._drafts.seek(start)
        return self._drafts.read(length)

    def _raws(self) -> Iterator[tuple[int, RawMessage]]:
        if self._archive is None:
            return iter(())
        data, name = self._archive
        return enumerate(split_mbox(data, self._reading.dialect, name=name))

    def _unknown(self, report_progress: Callable[[int], None]) -> Iterator[tuple[int, RawMessage]]:
        for ordinal, raw in self._raws():
            digest, facts = self._recall(raw)
            self.found.append(Found(raw.offset, raw.length, raw.suspicious, digest, facts))
            report_progress(ordinal + 1)
            if facts is None:
                yield ordinal, raw

    def _recall(self, raw: RawMessage) -> tuple[bytes, Facts | None]:
        """Return the digest under which a message is known, and what is known of it."""
        digest = _digest(raw)
        facts = self._known.get(digest)
        if facts is None and self._known:
            dated = _digest(raw, raw.from_line)
            if facts := self._known.get(dated):
                return dated, facts
        return digest, facts

    def _parse(self, raws: Iterable[tuple[int, RawMessage]]) -> None:
        end = self._drafts.seek(0, 2)
        for batch, parsed in self._workers.map(parse_batch, self._reading, _batches(raws)):
            for (_, raw), one in zip(batch, parsed, strict=True):
                found = self.found[one.ordinal]
                digest = _digest(raw, raw.from_line) if one.needs_from_line else found.digest
                self.found[one.ordinal] = found._replace(
                    digest=digest, facts=one.facts, reason=one.reason
                )
                self._places[one.ordinal] = (end, len(one.draft))
                end += self._drafts.write(one.draft)


def _batches(
    raws: Iterable[tuple[int, RawMessage]],
) -> Iterator[list[tuple[int, RawMessage]]]:
    batch: list[tuple[int, RawMessage]] = []
    size = 0
    for one in raws:
        batch.append(one)
        size += one[1].length
        if len(batch) == BATCH_MESSAGES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _digest(raw: RawMessage, from_line: bytes = b"") -> bytes:
    """Return the digest of a message's bytes, and of its From_ line where that counts.

    It counts only where a message has no other date: some servers make up another at each
    download. What the splitter says of the message counts always.
    """
    digest = blake2b(raw.raw, digest_size=32, salt=bytes([raw.truncated, raw.suspicious]))
    digest.update(from_line)
    return digest.digest()
