"""A search response: hits with all that is needed to show them and to cite the exact lines."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Span = tuple[int, int]


@dataclass(frozen=True)
class Facets:
    """How many messages match: by list, month, year (UTC), author, sender and kind, most first.

    Authors are addresses, senders are names as they are written; of both it is those with the most
    messages. Months and years are in their order. A message that is in several lists, or of several
    kinds, counts in each. `at_least`: more match than `total`, which were not counted.
    """

    total: int
    at_least: bool
    lists: Mapping[str, int]
    months: Mapping[str, int]
    years: Mapping[str, int]
    authors: Mapping[str, int]
    senders: Mapping[str, int]
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class ChunkHit:
    """A chunk that matches; spans are (start, end) in characters of its message's body.

    `highlights` are the words of the query in it, in characters of the body as well. `score` is the
    message's for its best chunk, less for the others; `distance` is the cosine distance of its
    vector, None where the index did not return it. `focus` is the character of `text` around which
    it has most of the query: a snippet begins a little before.
    """

    key: str
    index: int
    text: str
    spans: tuple[Span, ...]
    score: float
    distance: float | None
    highlights: tuple[Span, ...]
    focus: int = 0

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield the text in pieces, each with whether it is highlighted."""
        at = 0
        for start, end in self.spans:
            inside = [(s, e) for s, e in self.highlights if start <= s < end]
            cut = start
            for s, e in inside:
                yield self.text[at : at + s - cut], False
                yield self.text[at + s - cut : at + e - cut], True
                at, cut = at + e - cut, e
            yield self.text[at : at + end - cut], False
            at += end - cut


#: What found a message: words or meaning, its thread alone, its id, or a list by date.
FoundBy = Literal["legs", "thread", "id", "date"]
#: How it is said where no leg found a message.
REASONS = {
    "thread": "its thread",
    "id": "its id",
    "date": "date (newest with all that is asked)",
}


@dataclass(frozen=True)
class HitExplanation:
    """Why a message is a hit.

    `ranks`: its rank in each leg that found it, from 1; where none did, `found_by` says what did.
    Messages that are listed by date have no score. `words`: the words of the query in its subject
    and chunks, as they are written there. `distance`: cosine distance of its nearest chunk.
    `thread_score`: the part of the score that comes from the best messages of its thread.
    """

    ranks: Mapping[str, int]
    words: tuple[str, ...]
    distance: float | None
    thread_score: float
    found_by: FoundBy = "legs"

    def reasons(self) -> Iterator[str]:
        """Yield the reasons in words: ranks or what else found it, distance, words, thread."""
        ranks = ", ".join(f"{leg} {rank}" for leg, rank in sorted(self.ranks.items()))
        yield ranks or REASONS[self.found_by]
        if self.distance is not None:
            yield f"distance {self.distance:.3f}"
        if self.words:
            yield f"words {', '.join(self.words)}"
        if self.thread_score:
            yield f"thread {self.thread_score:.3f}"


@dataclass(frozen=True)
class NewerCopy:
    """The newest near-duplicate of a hit, where it is newer: a patch's version to review."""

    message_id: str
    subject: str
    sent_at: str


@dataclass(frozen=True)
class Hit:
    """A message that was found, once for all lists that carry it.

    Higher scores are better, within one response. `copies` are the ids of near-duplicates that were
    folded into it: the same sender, subject and words; `newer_copy` is the newest of them, where it
    is newer than the hit. `in_thread` are the messages of its thread that were found too and are no
    hits, best first: a thread has three hits at most, or one where hits are grouped by thread. The
    first hit of the thread names them; where that is folded into a hit of another thread, this one.
    `subject_highlights` are the words of the query in the subject, in characters of it.
    """

    message_id: str
    lists: tuple[str, ...]
    month: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    score: float
    thread_id: str | None
    chunks: tuple[ChunkHit, ...]
    why: HitExplanation
    attachments: tuple[str, ...]
    copies: tuple[str, ...] = ()
    in_thread: tuple[str, ...] = ()
    subject_highlights: tuple[Span, ...] = ()
    newer_copy: NewerCopy | None = None


@dataclass(frozen=True)
class Response:
    """The hits, best first.

    `short`: fewer hits than requested. No more match, or more than the depth of a leg would have
    to be read, or an approximate index found fewer under a filter. `looked_back_to`: of a
    list by date that ends early, messages before that day (UTC) were not looked at.
    `without_quotes` are phrases that nothing was found with, beside words: the hits are those of
    the same search with the words of the phrases, any of which may be missing. `permalink` is a
    query that asks for the same again. If requested: `explain` has how the query was understood
    ("query"), the terms, the counts and times of the legs; `facets` how many messages match.
    """

    query_id: str
    query: str
    mode: str
    took_ms: float
    short: bool
    hits: tuple[Hit, ...]
    permalink: str = ""
    explain: Mapping[str, Any] | None = None
    facets: Facets | None = None
    looked_back_to: str | None = None
    without_quotes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the response as what json.dumps takes."""
        return asdict(self)
