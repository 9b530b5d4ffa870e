"""A search response: hits with all that shows them and cites exact lines, and conversations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mail_assets.reading.patch_states import PatchState
from mail_assets.search.language.request import After

Span = tuple[int, int]
#: Reasons why there is no next page.
End = Literal["all", "far", "depth"]

#: Characters of the shortest snippet that is shown of a chunk, which a longer one contains, and of
#: the first message of a conversation.
SHORTEST = 240
#: Characters of a word that are left out where a snippet would begin within it; text of some
#: languages has no blanks.
MAX_CUT = 20
_BLANK = re.compile(r"\s+")
#: Signs with a meaning in Markdown; a backslash takes it away (CommonMark 0.31, 2.4).
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


@dataclass(frozen=True)
class Facets:
    """Numbers of messages that match: by list, month, year (UTC), author, sender and kind.

    The most frequent value comes first, months and years are in their order. Authors are addresses,
    senders are names as they are written; of both only the most frequent are counted. A message
    with several values counts in each. `at_least`: more messages match than `total`.
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
    most of the query is: a snippet begins a little before.
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


#: The way a message was found: words or meaning, its thread alone, its id, or a list by date.
FoundBy = Literal["legs", "thread", "id", "date"]
#: The reason that is shown where no leg found a message.
REASONS = {"thread": "its thread", "id": "its id", "date": "date (it has all that is asked)"}


@dataclass(frozen=True)
class HitExplanation:
    """Why a message is a hit.

    `ranks`: its rank from 1 in each leg that found it; `found_by` names the reason where none did.
    Messages that are listed by date have no score. `words`: the words of the query in its subject
    and chunks, as they are written there. `distance`: cosine distance of its nearest chunk.
    `thread_score`: the part of the score that comes from the best messages of its thread.
    `commits`: its commits that change a file or function which the query names, a line each.
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

    `contested`: several texts claim its id. Then `text` is the number of this one, 1 for the text
    that arrived first; of those that match it is the first.

    Higher scores are better, within one response. `copies` are the ids of near-duplicates that were
    folded into it: the same sender, subject and words; `newer_copy` is the newest of them, where it
    is newer than the hit. `patch` is the state of the patches that the message has.
    `other_versions` are the ids of its other versions that were found in other threads and are
    shown by this one, best first; `best_version` is the first of them if it matches better than
    this one.
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
    """A row of a page: a thread, or a message that is in none, whose `thread_id` is null.

    It stands where the best of its messages would. Subject (without its marks), lists, dates (of
    the first and the last message), `first`, and the numbers of messages and people are those of
    the whole thread in the lists that are searched. `names` are the people who wrote first, a few.
    `best` are the ids of its best messages, one or two of the hits. `more` is the number of other
    messages that were found in it. `others` are their ids, best first, and those of messages that
    only the thread brought. They include those of a thread whose best messages are near-duplicates
    of these hits: it has no row of its own.
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
    """The message at hand, its thread, None if it is in none, and the subject of that."""

    message_id: str
    thread_id: str | None
    subject: str


@dataclass(frozen=True)
class Response:
    """The hits, best first; `conversations` has their threads, unless messages were asked for.

    The hits of a conversation follow one another, best first. `short`: fewer rows (conversations,
    or hits) than requested. Either no more match, or a leg would have to be read deeper
    than its limit, or an approximate index found fewer under a filter. `looked_back_to`: a list by
    date ends early, and messages before that day (UTC) were not looked at; of the oldest, those
    from that day on. `notes` say what is not as a person may expect: what ambiguous signs were
    taken for, and which words are in no index or in no message. `without_quotes`: phrases that
    nothing was found with; the hits are those of the same search with the words of the phrases, any
    of which may be missing. `permalink`: a query that asks for the same again. If requested,
    `explain` says how the query was understood ("query"), the terms, the counts and times of the
    legs; `facets` count the messages that match. `near` is the thread at hand: its subject joined
    the question, and it is left out. `next_row` begins the next page. Where there is none, `end` is
    why: "all" that match were listed, others are too "far" from the question or below the score
    that was asked for, or the ranking has no more "depth". `previous_row` is that of the page
    before, if one is.
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
        """Return the response as plain values for json.dumps, without the rows of other pages."""
        values = asdict(self)
        del values["next_row"], values["previous_row"]
        return values


def name_people(names: Sequence[str], people: int) -> str:
    """Return a few names and the number of the other people: "Ann, Bo and 3 more"."""
    more = people - len(names)
    said = ", ".join(names)
    if more <= 0 or not said:
        return said or "unknown sender"
    return f"{said} and {more} more"


def find_start(text: str, focus: int, size: int) -> int:
    """Return where a snippet of a text begins: a third of it before its focus, at a word."""
    start = max(0, focus - size // 3)
    blank = _BLANK.search(text, start - 1, min(focus, start + MAX_CUT)) if start else None
    return blank.end() if blank else start


def cut_beginning(text: str, size: int, *, keep_lines: bool = False) -> str:
    """Return the beginning of a text, cut after a word: "..." marks that it goes on.

    It is on one line, or with `keep_lines` on those that it has.
    """
    line = _BLANK.sub(_keep_line if keep_lines else " ", text.strip())
    if len(line) <= size:
        return line
    blanks = [*_BLANK.finditer(line, max(0, size - MAX_CUT), size)]
    return f"{line[: blanks[-1].start() if blanks else size]}..."


def _find_end(text: str, focus: int, end: int) -> int:
    """Return where a snippet ends that may go on to `end`: after a word, and after its focus."""
    first = max(focus + 1, end - MAX_CUT)
    blanks = [*_BLANK.finditer(text, first, end + 1)] if end < len(text) else []
    return blanks[-1].start() if blanks else end


def cut_snippet(
    chunk: ChunkHit, size: int, *, keep_lines: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield about `size` characters of a chunk, starting shortly before its focus, whole words.

    They come in pieces, each with whether it is highlighted. White space becomes single spaces, or
    with `keep_lines` a line end where it has one, and "..." marks where the chunk continues.
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
    """Return text that Markdown shows unchanged: mail must not insert images or links."""
    return _PUNCTUATION.sub(r"\\\g<0>", _BLANK.sub(" ", text))
