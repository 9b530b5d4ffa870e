"""What a backfill did: months done and failed, and counts of rows, texts and vectors."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mail_assets.month import ListMonth
from mail_assets.steps.unchanged_months import UnchangedMonth

#: What each asset holds of a month when its step is done.
STATE_COUNTS: Mapping[str, tuple[str, ...]] = {
    "mbox_archives": ("found", "bytes"),
    "messages": ("stored", "duplicates", "quarantined", "removed"),
    "words": ("documents",),
    "chunks": ("chunks", "tokens"),
    "embeddings": ("texts",),
    "vectors": ("chunks",),
}

#: What each asset's step did; a step that runs twice has done the sum.
WORK_COUNTS: Mapping[str, tuple[str, ...]] = {
    "mbox_archives": ("fetched",),
    "messages": ("written", "deleted"),
    "words": ("written", "deleted"),
    "chunks": ("written", "deleted"),
    "embeddings": ("encoded",),
    "vectors": ("written", "deleted"),
}

#: The partitioned assets, in the order of the chain.
CHAIN = tuple(STATE_COUNTS)

#: Entries of an index that are worth its upkeep when a backfill ends, and the share that is: with
#: 1,000 messages beside the index of words each search takes 13 ms more.
MUCH_CHANGED, SHARE_CHANGED = 1_000, 0.01


@dataclass
class Report:
    """What a backfill did so far.

    `failed` has the reason under "LIST YYYY-MM", "list LIST" where its source cannot be listed,
    "threads" or "indexes". `outside` are months that have no partitions and were left out,
    `beyond` those before or after the range that was asked for.
    `unchanged` are months that needed no run. `threads` counts those of the whole corpus.
    """

    done: list[ListMonth] = field(default_factory=list)
    unchanged: list[ListMonth] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    outside: list[ListMonth] = field(default_factory=list)
    beyond: list[ListMonth] = field(default_factory=list)
    threads: int = 0
    interrupted: bool = False
    _months: dict[str, dict[ListMonth, Counter[str]]] = field(default_factory=dict)

    @property
    def assets(self) -> tuple[str, ...]:
        """The assets of which something is counted, in the order of the chain."""
        return tuple(self._months)

    @property
    def changed(self) -> bool:
        """Whether anything was written or deleted anywhere."""
        return any(self.changed_in(asset) for asset in self._months)

    def changed_in(self, asset: str) -> bool:
        """Return whether rows or vectors of an asset were written or deleted."""
        counts = self.counts_of(asset)
        return bool(counts["written"] or counts["deleted"])

    def changed_much_in(self, asset: str) -> bool:
        """Return whether so much of the index of an asset changed that it is worth its upkeep."""
        counts = self.counts_of(asset)
        held = sum(counts[name] for name in STATE_COUNTS[asset])
        return counts["written"] + counts["deleted"] >= min(MUCH_CHANGED, held * SHARE_CHANGED)

    def expect(self, assets: Iterable[str]) -> None:
        """Count these assets, from 0."""
        for asset in assets:
            self._months.setdefault(asset, {})

    def add(self, asset: str, month: ListMonth, counts: Mapping[str, int]) -> None:
        """Add what a step recorded of a month.

        A step that is retried, or run again by a smaller range, records the month again: what the
        month holds replaces the earlier record, what was done is added to it.
        """
        kept = self._months.setdefault(asset, {}).setdefault(month, Counter())
        for name in STATE_COUNTS[asset]:
            kept[name] = counts[name]
        for name in WORK_COUNTS[asset]:
            kept[name] += counts[name]

    def add_unchanged(self, months: Mapping[ListMonth, UnchangedMonth]) -> None:
        """Count what months hold that need no run, as was recorded of them."""
        self.unchanged += months
        for month, kept in months.items():
            for asset in self.assets:
                counts = kept.states[asset].counts
                held = {name: int(counts[name]) for name in STATE_COUNTS[asset]}
                self.add(asset, month, held | dict.fromkeys(WORK_COUNTS[asset], 0))

    def merge(self, other: "Report") -> None:
        """Add what another report has done of the months."""
        self.done += other.done
        self.failed.update(other.failed)
        self.interrupted |= other.interrupted
        for asset, months in other._months.items():
            for month, counts in months.items():
                self.add(asset, month, counts)

    def counts_of(self, asset: str) -> Counter[str]:
        """Return the counts of an asset over all months, by name, zeros included."""
        names = STATE_COUNTS[asset] + WORK_COUNTS[asset]
        totals = Counter(dict.fromkeys(names, 0))
        for counts in self._months.get(asset, {}).values():
            totals.update(counts)
        if asset == "embeddings":
            # not as recorded: a second attempt reuses what the first has encoded
            totals["reused"] = totals["texts"] - totals["encoded"]
        return totals
