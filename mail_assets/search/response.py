"""The search response: conversations, and hits with the text and spans to show and cite."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mail_assets.reading.patch_states import PatchState
from mail_assets.search.language.request import After

Span = tuple[int, int]
#: Reasons why there is no next page.
End = Literal["all", "far", "depth"]

#: Characters of the shortest snippet of a chunk, and of a conversation's first message. Longer
#: snippets contain the shortest.
SHORTEST = 240
#: Most characters that are skipped so that a snippet begins at a word; some scripts have no blanks.
MAX_CUT = 20
_BLANK = re.compile(r"\s+")
#: Signs with a meaning in Markdown; a backslash escapes them (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


@dataclass(frozen=True)
class Facets:
    """Numbers of matching messages by list, month, year (UTC), author, sender and kind.

    The most frequent value comes first; months and years are in order. Authors are addresses,
    senders are names as written; both have the most frequent values only. A message with several
    values counts in each. `at_least`: more messages than `total` may match.
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

    `highlights` are the words of the query in it, also in characters of the body. `score` is the
    message's score for its best chunk, and less for others. `distance` is the cosine distance of
    its vector; None if the index did not return it. `focus` is the character of `text` near which
    most of the query is; a snippet begins a little before.
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


#: The way a message was found: by words or meaning, its thread only, its id, or a list by date.
FoundBy = Literal["legs", "thread", "id", "date"]
#: The reason to show if no leg found a message.
REASONS = {"thread": "its thread", "id": "its id", "date": "date (it has all that is asked)"}


@dataclass(frozen=True)
class HitExplanation:
    """Why a message is a hit.

    - `ranks`: its rank, from 1, in each leg that found it; `found_by` gives the reason if none did.
      Messages listed by date have no score.
    - `words`: words of the query in its subject and chunks, as written there.
    - `distance`: cosine distance of its nearest chunk.
    - `thread_score`: the part of the score that comes from the best messages of its thread.
    - `commits`: its commits that change a file or function in the query, one line each.
    """

    ranks: Mapping[str, int]
    words: tuple[str, ...]
    distance: float | None
    thread_score: float
    found_by: FoundBy = "legs"
    commits: tuple[str, ...] = ()

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
        yield from self.commits


@dataclass(frozen=True)
class NewerCopy:
    """The newest near-duplicate of a hit, where it is newer: a patch's version to review."""

    message_id: str
    subject: str
    sent_at: str


@dataclass(frozen=True)
class Hit:
    """A message that was found, once for all lists that carry its text.

    - `score`: higher is better within one response.
    - `contested`: several texts claim its id. `text` is then the number of this one: the first to
      arrive of those that match. 1 is the text that arrived first.
    - `copies`: ids of near-duplicates folded into it (same sender, subject and words).
      `newer_copy` is the newest of these if it is newer than the hit.
    - `patch`: state of its patches.
    - `other_versions`: ids of its versions in other threads, which this hit represents, best first.
      `best_version` is the first of these if it matches better than the hit.
    - `subject_highlights`: spans of query words, in characters of the subject.
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
    subject_highlights: tuple[Span, ...] = ()
    newer_copy: NewerCopy | None = None
    patch: PatchState | None = None
    other_versions: tuple[str, ...] = ()
    best_version: str | None = None
    contested: bool = False
    text: int = 1


@dataclass(frozen=True)
class FirstMessage:
    """The first message of a conversation; `text` is the beginning of its new text.

    `contested`: several texts claim its id, and this one arrived first.
    """

    message_id: str
    from_name: str
    from_email: str
    sent_at: str
    text: str
    contested: bool


@dataclass(frozen=True)
class Conversation:
    """A row of a page: a thread, or a message in no thread, whose `thread_id` is null.

    Its best message places it. Subject (without marks), lists, dates of the first and last message,
    `first`, and the numbers of messages and people are those of the whole thread in the searched
    lists. `names` has the first few people who wrote.

    `best` has the ids of its best messages, one or two of the hits. `more` is the number of other
    messages found in it. `others` has their ids, best first, and those of messages that came with
    the thread. `others` includes messages of threads whose best messages are near-duplicates of
    these hits; such threads have no row of their own.
    """

    thread_id: str | None
    subject: str
    lists: tuple[str, ...]
    first_sent_at: str
    last_sent_at: str
    messages: int
    people: int
    names: tuple[str, ...]
    first: FirstMessage | None
    best: tuple[str, ...]
    more: int
    others: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """The message at hand, its thread (None if it is in none), and the thread's subject."""

    message_id: str
    thread_id: str | None
    subject: str


@dataclass(frozen=True)
class Response:
    """The result of a search: hits, best first, and their conversations.

    - `hits`: the hits of a conversation follow each other, best first.
    - `conversations`: empty if single messages were requested.
    - `short`: fewer rows (conversations, or hits) than requested. Either no more match, or a leg
      reached its limit, or an approximate index found fewer under a filter.
    - `looked_back_to`: a list by date ended early; messages before this day (UTC) were not read.
      If the oldest come first, messages from this day on were not read.
    - `notes`: how ambiguous signs were read, and which words are in no index or in no message.
    - `without_quotes`: phrases that no message has. The hits are those of the same search with the
      words of the phrases, which hits may lack.
    - `permalink`: a query that repeats the search.
    - `explain`: on request, how the query was understood ("query"), and the terms, counts and times
      of the legs. `facets`: on request, numbers of matching messages.
    - `near`: the thread at hand; its subject was added to the question, and it is left out.
    - `next_row`: begins the next page. If there is none, `end` gives the reason: "all" matches were
      listed, others are too "far" from the question or below the minimum score, or the ranking
      reached its "depth".
    - `previous_row`: begins the previous page, if there is one.
    """

    query_id: str
    query: str
    mode: str
    took_ms: float
    short: bool
    hits: tuple[Hit, ...]
    conversations: tuple[Conversation, ...] = ()
    permalink: str = ""
    explain: Mapping[str, Any] | None = None
    facets: Facets | None = None
    looked_back_to: str | None = None
    without_quotes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    near: Reading | None = None
    end: End | None = None
    next_row: After | None = None
    previous_row: After | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values for json.dumps, without `next_row` and `previous_row`."""
        values = asdict(self)
        del values["next_row"], values["previous_row"]
        return values


def name_people(names: Sequence[str], people: int) -> str:
    """Join names, with the number of other people: "Ann, Bo and 3 more"."""
    more = people - len(names)
    said = ", ".join(names)
    if more <= 0 or not said:
        return said or "unknown sender"
    return f"{said} and {more} more"


def find_start(text: str, focus: int, size: int) -> int:
    """Return where a snippet begins: at a word, with a third of the snippet before its focus."""
    start = max(0, focus - size // 3)
    blank = _BLANK.search(text, start - 1, min(focus, start + MAX_CUT)) if start else None
    return blank.end() if blank else start


def cut_beginning(text: str, size: int, *, keep_lines: bool = False) -> str:
    """Return the beginning of a text, cut after a word ("..."); one line, unless `keep_lines`."""
    line = _BLANK.sub(_keep_line if keep_lines else " ", text.strip())
    if len(line) <= size:
        return line
    blanks = [*_BLANK.finditer(line, max(0, size - MAX_CUT), size)]
    return f"{line[: blanks[-1].start() if blanks else size]}..."


def _find_end(text: str, focus: int, end: int) -> int:
    """Return where a snippet ends, at most at `end`: after a word, and after its focus."""
    first = max(focus + 1, end - MAX_CUT)
    blanks = [*_BLANK.finditer(text, first, end + 1)] if end < len(text) else []
    return blanks[-1].start() if blanks else end


def cut_snippet(
    chunk: ChunkHit, size: int, *, keep_lines: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk in whole words, from shortly before its focus.

    Each piece comes with whether it is highlighted. White space becomes single spaces; with
    `keep_lines` line ends stay. "..." marks where the chunk continues.
    """
    start = find_start(chunk.text, chunk.focus, size)
    end = _find_end(chunk.text, chunk.focus, start + size)
    if start:
        yield "...", False
    at = 0
    for text, marked in chunk.pieces():
        part = text[max(0, start - at) : max(0, end - at)]
        if part:
            yield _BLANK.sub(_keep_line if keep_lines else " ", part), marked
        at += len(text)
    if at > end:
        yield "...", False


def _keep_line(blank: re.Match[str]) -> str:
    return "\n" if "\n" in blank[0] else " "


def mark_spans(text: str, spans: Iterable[Span]) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces, each with whether it is one of some ascending spans."""
    at = 0
    for start, end in spans:
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def render_snippet_markdown(chunk: ChunkHit, size: int) -> str:
    """Return a snippet as one line of Markdown, its highlights bold."""
    pieces = ((escape_markdown(text), marked) for text, marked in cut_snippet(chunk, size))
    return "".join(f"**{text}**" if marked else text for text, marked in pieces).strip()


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged: mail must not insert images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", _BLANK.sub(" ", text))
