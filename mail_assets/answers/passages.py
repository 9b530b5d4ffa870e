"""Passages: whole paragraphs of new text, and how likely each answers the question.

A paragraph is a run of lines between blank ones. Text that depends on it stays with it: the lines
after a colon, the items of a list, a short piece of code, and the rest of its sentence below that
code. A few words alone, such as "No.", belong to the paragraph below. A paragraph that is too long
is cut at the end of a sentence, and a mark shows the cut. Code, diffs, logs and tables are shown
only with the prose that they belong to.

A logistic regression rates passages by their features, and so ranks them. It was fitted on judged
questions to three lists; each list was evaluated with coefficients fitted on the two others. The
rating does not show whether the archive answers at all. docs/benchmarks.md has the figures;
`python -m benchmarks.answers --fit` prints the coefficients.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple, TypeAlias

import psycopg

from mail_assets.answers.excerpts import Excerpt, Hide, show_all
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import own_parts
from mail_assets.postgres.statements import statement
from mail_assets.search.language.request import Request
from mail_assets.search.page import overlap
from mail_assets.search.response import Hit
from mail_assets.search.searcher import Searcher
from mail_assets.text.chunking import build_document
from mail_assets.text.letters import count_words, has_unspaced
from mail_assets.text.sentences import find_item_text, find_sentences, mark_prose


class Features(NamedTuple):
    """Features of a passage, each 0 to 1."""

    #: Weighted share of the question's words in the passage.
    words: float
    #: Cosine of the question and the passage with its subject, by the encoder of the index.
    similarity: float
    #: Cosine of the question and the nearest indexed chunk that shares text with the passage.
    chunk: float
    #: Share of the question's names and numbers that neither the passage nor its subject has. Such
    #: a passage may be about another thing of the same kind.
    missing: float
    #: Number of words divided by LONG, at most 1: a few words state little.
    length: float
    #: 1 if the question asks for a quantity or version and the passage has no digit.
    uncounted: float
    #: 1 if the passage ends with a question mark, or asks the same question.
    asks: float


#: Weights of the features in the log-odds that a passage answers.
COEFFICIENTS = Features(
    words=1.95,
    similarity=3.26,
    chunk=2.84,
    missing=-1.02,
    length=0.94,
    uncounted=-0.16,
    asks=-1.07,
)
#: Weight of the product of words and similarity, and the intercept.
BOTH, INTERCEPT = 1.31, -8.15


#: Words from which a passage is long enough.
LONG = 40

_ASKED_WORD = re.compile(r"[^\s?!,;\"()\u00bf]+")
_NAME = re.compile(r"[\d_/]|[a-z][A-Z]|\.\w|.[A-Z]")
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"\w+")
_ASKED = re.compile(r"[^.!?\uff1f]{1,300}[?\uff1f]")
_QUANTITY = re.compile(
    r"\b(?:how (?:many|much|large|long|big|often|old|fast)|since (?:which|when)|"
    r"(?:which|what) (?:\w+ )?(?:version|size|number|year)|maximum|default)\b",
    re.IGNORECASE,
)


def describe(question: str, subject: str, text: str, *, words: float, chunk: float) -> Features:
    """Return the features of a passage; its similarity is left at 0."""
    names = find_names(question)
    whole = f"{subject}\n{text}".lower()
    return Features(
        words=words,
        similarity=0.0,
        chunk=chunk,
        missing=sum(name not in whole for name in names) / len(names) if names else 0.0,
        length=min(1.0, len(text.split()) / LONG),
        uncounted=float(bool(_QUANTITY.search(question)) and not _DIGIT.search(text)),
        asks=float(text.rstrip().endswith(("?", "\uff1f")) or _repeats(question, text)),
    )


def _repeats(question: str, text: str) -> bool:
    """Return whether a text asks a question that has at least half of the words of this one."""
    words = {*_PLAIN.findall(question.lower())}
    asked = ({*_PLAIN.findall(one.lower())} for one in _ASKED.findall(text))
    return any(2 * len(words & one) >= len(words) for one in asked)


def find_names(question: str) -> set[str]:
    """Return the names and numbers of a question in lower case.

    A name has a digit, a sign or an inner capital letter. A word with a capital letter is a name
    too, unless it begins the question.
    """
    words = [word.strip(".:'") for word in _ASKED_WORD.findall(question)]
    return {
        word.lower()
        for place, word in enumerate(words)
        if _NAME.search(word) or (place and len(word) > 1 and word[0].isupper())
    }


def rate(one: Features) -> float:
    """Return the log-odds that a passage answers."""
    added = sum(a * b for a, b in zip(COEFFICIENTS, one, strict=True))
    return INTERCEPT + BOTH * one.words * one.similarity + added


#: Most characters of a passage: about 200 words.
MAX_CHARACTERS = 1_200
#: Most lines of code that stay with the paragraph above it.
MAX_CODE_LINES = 12
#: Fewest words of a paragraph that can stand alone.
MIN_WORDS = 5
#: Most paragraphs of a message that are rated, and most that are compared by meaning: the encoder
#: takes some 20 ms for each.
MAX_OF_MESSAGE, MAX_COMPARED = 40, 3
#: Most characters of a passage that are compared, and most words, parts of words and signs: code
#: has more of these than the encoder reads.
COMPARED, MOST_PIECES = 600, 180
_PIECE = re.compile(r"[^\W_]{1,6}|_|[^\w\s]")
_WORD = re.compile(r"\w+")
#: Most passages shown.
MOST = 5
#: Marks a passage whose paragraph goes on before or after it.
CUT = "[...]"

#: A line that is not part of the text: "Signed-off-by: ...", and the line "---" above a diff.
_TRAILER = re.compile(
    r"(?:[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}|Cc|CC|From|Fixes|Link|Closes|Bug): |"
    r"Fixes [0-9a-f]{8,40} |---$"
)
#: A command after the prompt of a shell, a database or Python. Its output follows.
_COMMAND = re.compile(
    r"\s*(?:[$%#] [a-z./~]|>>> \S|\[?\w[\w.-]{1,30}(?:@[\w.-]{1,60})?[^\s$#]{0,60}"
    r"(?: [\w./~-]{1,60}\])?[$#] [a-zA-Z./~])"
)

#: A word of a sentence with its punctuation, but not the name of a function, a path or a number.
_PLAIN_WORD = re.compile(
    r"[(\[\"'\u201c\u2018]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[)\]\"'\u201d\u2019,.;:!?]*"
)
#: A line that has words but is not prose: code, a log, or an author's line in a shortlog.
_CODE = re.compile(
    r"\s*(?:(?:def|class) \w[^\n]*:$|(?:from [\w.]+ )?import [\w.*]+(?:,| as |$)|[-+]\w+[(:=.]|"
    r"(?:if|elif|for|while|with|except|case)\b[^\n]*[:{)]$|(?:else|try|finally):$|#include|\"{3}|'{3}|"
    r"[\[(]?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|[^\n()]{2,60} \(\d{1,4}\):$)"
)
#: The gap between two columns of a table; justified text has at most two blanks.
_COLUMNS = re.compile(r"\S(?: {3}|\t) *\S")
#: Ends of a sentence that introduces code.
_INTRODUCES = (":", ".", "!", "?", "\uff1a", "\u3002", "\uff01", "\uff1f")

Segments: TypeAlias = Sequence[tuple[int, int, str]]


class Paragraph(NamedTuple):
    """The characters of a body from start to end; `before`, `after`: cut off at this side."""

    start: int
    end: int
    before: bool = False
    after: bool = False


class Passage(NamedTuple):
    """A paragraph of a hit as shown, with its features for the question."""

    hit: Hit
    paragraph: Paragraph
    text: str
    features: Features
    arrived_at: dt.datetime

    def as_excerpt(self, number: int) -> Excerpt:
        """Return the passage with a number for citations, and with marks where it was cut."""
        one = self.paragraph
        text = f"{f'{CUT} ' if one.before else ''}{self.text}{f' {CUT}' if one.after else ''}"
        return Excerpt(number, self.hit, ((one.start, one.end),), text)


def find_passages(
    searcher: Searcher,
    connection: psycopg.Connection,
    request: Request,
    hits: Sequence[Hit],
    hide: Hide = show_all,
) -> list[Passage]:
    """Return the best paragraphs of each hit, in no particular order.

    Words and chunks preselect MAX_COMPARED paragraphs of a message. The encoder compares these with
    the question.
    """
    ranks = {hit.message_id: rank for rank, hit in enumerate(hits)}
    keys = {hit.chunks[0].key: hit for hit in hits if hit.chunks}
    rows = connection.execute(statement("answer", "bodies"), {"keys": [*keys]}).fetchall()
    rows.sort(key=lambda row: ranks[keys[row[0]].message_id])
    found = [
        (keys[key], arrived_at, one, hide(body, one.start, one.end))
        for key, body, segments, arrived_at in rows
        for one in find_paragraphs(body, segments)[:MAX_OF_MESSAGE]
    ]
    words = searcher.weigh_texts(request, [text for *_, text in found]) if found else []
    passages = [
        Passage(
            hit,
            one,
            text,
            describe(request.query, hit.subject, text, words=share, chunk=_near(hit, one)),
            arrived_at,
        )
        for (hit, arrived_at, one, text), share in zip(found, words, strict=True)
    ]
    nearest = _nearest_of_messages(passages)
    beginnings = [build_document(one.hit.subject, _beginning(one.text)) for one in nearest]
    similarities = searcher.compare_texts(request, beginnings) if nearest else []
    return [
        one._replace(features=one.features._replace(similarity=max(0.0, similarity)))
        for one, similarity in zip(nearest, similarities, strict=True)
    ]


def _beginning(text: str) -> str:
    last = next(islice(_PIECE.finditer(text, 0, COMPARED), MOST_PIECES, None), None)
    return text[: last.start() if last else COMPARED]


def _nearest_of_messages(passages: Sequence[Passage]) -> list[Passage]:
    taken: Counter[str] = Counter()
    nearest = []
    for one in sorted(passages, key=lambda one: -rate(one.features)):
        taken[one.hit.message_id] += 1
        if taken[one.hit.message_id] <= MAX_COMPARED:
            nearest.append(one)
    return nearest


def _near(hit: Hit, one: Paragraph) -> float:
    """Return the similarity of the nearest chunk that shares text with a paragraph."""
    return max(
        (
            1 - chunk.distance
            for chunk in hit.chunks
            if chunk.distance is not None
            and any(start < one.end and one.start < end for start, end in chunk.spans)
        ),
        default=0.0,
    )


def find_paragraphs(body: str, segments: Segments) -> list[Paragraph]:
    """Return the paragraphs that the author wrote and that can stand alone, in order."""
    return [
        piece
        for start, end, kind in own_parts(body, [Segment(*one) for one in segments])
        if kind == "text"
        for one in _join_blocks(body, start, end)
        if count_words(body[one.start : one.end]) >= MIN_WORDS
        for piece in _cut(body, one)
    ]


class _Block(NamedTuple):
    """Lines between two blank lines."""

    start: int
    end: int
    lines: int
    is_prose: bool
    is_item: bool


def _find_blocks(body: str, start: int, stop: int) -> Iterator[_Block]:
    lines = body[start:stop].split("\n")
    starts = [*accumulate((len(line) + 1 for line in lines), initial=start)]
    prose = mark_prose(lines)
    first = 0
    for place, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        last = place
        while first < last and _TRAILER.match(lines[last - 1]):
            last -= 1
        while first < last and _TRAILER.match(lines[first]):
            first += 1
        if first < last:
            for begin, end, is_prose in _find_parts(lines, prose, first, last):
                text = body[starts[begin] : starts[end] - 1].rstrip()
                yield _Block(
                    starts[begin],
                    starts[begin] + len(text),
                    end - begin,
                    is_prose,
                    find_item_text(lines[begin]) > 0,
                )
        first = place + 1


def _find_parts(
    lines: Sequence[str], prose: Sequence[bool], first: int, last: int
) -> Iterator[tuple[int, int, bool]]:
    """Yield a block, and whether it is prose: at least half of its lines are sentences.

    A sentence directly above code is yielded before the code.
    """
    marks = [*_mark_sentences(lines[first:last], prose[first:last])]
    is_prose = 2 * sum(marks) >= len(marks)
    lead = marks.index(False) if not is_prose else 0
    introduction = "\n".join(lines[first : first + lead]).rstrip()
    if introduction.endswith(_INTRODUCES) and count_words(introduction) >= MIN_WORDS:
        yield first, first + lead, True
        first += lead
    yield first, last, is_prose


def _mark_sentences(lines: Sequence[str], prose: Sequence[bool]) -> Iterator[bool]:
    """Yield for each line whether it is prose, outside code and the output of a command.

    Lines below code belong to it if they are indented more. Lines below a command belong to it
    unless they are indented less.
    """
    above: int | None = None
    command: int | None = None
    has_comment = any(line.strip().startswith(("/*", "*/")) for line in lines)
    for line, is_prose in zip(lines, prose, strict=True):
        bare = line.expandtabs().strip()
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        if command is not None and indent < command:
            command = None
        if command is None and _COMMAND.match(line):
            command = indent
        if command is not None or (above is not None and indent > above):
            yield False
            continue
        is_sentence = is_prose and not _CODE.match(line) and not _COLUMNS.search(line)
        is_sentence = is_sentence and not (has_comment and bare.startswith("*"))
        if is_sentence and not has_unspaced(bare):
            words = bare.split()
            is_sentence = 2 * sum(map(bool, map(_PLAIN_WORD.fullmatch, words))) >= len(words)
        above = None if is_sentence else indent
        yield is_sentence


def _join_blocks(body: str, start: int, end: int) -> Iterator[Paragraph]:
    """Yield the blocks of a text, each joined with the blocks that belong to it."""
    joined: list[_Block] = []
    for block in chain(_find_blocks(body, start, end), (None,)):
        if joined and not (block and _belongs(body, joined, block)):
            if any(one.is_prose for one in joined):
                yield Paragraph(joined[0].start, joined[-1].end)
            joined = []
        if block:
            joined.append(block)


def _belongs(body: str, joined: Sequence[_Block], block: _Block) -> bool:
    above = joined[-1]
    text = body[above.start : above.end]
    if block.end - joined[0].start > MAX_CHARACTERS:
        return False
    if text.endswith(":"):
        return True
    if not block.is_prose:
        return block.lines <= MAX_CODE_LINES
    if block.is_item:
        return any(one.is_item for one in joined)
    if not above.is_prose:
        return body[block.start : block.end].lstrip()[:1].islower()
    return count_words(text) < MIN_WORDS and not text.endswith((",", "!"))


def _cut(body: str, one: Paragraph) -> Iterator[Paragraph]:
    """Yield a paragraph in pieces of at most MAX_CHARACTERS."""
    start = one.start
    while one.end - start > MAX_CHARACTERS:
        end = _last_end(body, start, start + MAX_CHARACTERS)
        yield Paragraph(start, end, start > one.start, after=True)
        start = end + len(body[end : one.end]) - len(body[end : one.end].lstrip())
    if start < one.end:
        yield Paragraph(start, one.end, start > one.start)


def _last_end(body: str, start: int, limit: int) -> int:
    """Return the end of the last whole sentence, else line, else word, before a limit."""
    sentences = [span.end for span in find_sentences(body, start, limit)][:-1]
    ends = (*sentences[-1:], body.rfind("\n", start, limit), body.rfind(" ", start, limit))
    return next((end for end in ends if end > start + MAX_CHARACTERS // 3), limit)


def choose_passages(passages: Sequence[Passage], *, several: bool = False) -> list[Passage]:
    """Return the best passages, best first, one of each conversation unless `several`.

    A repeated text counts once, and belongs to the mail that arrived first: anybody can send a text
    many times, or the text of another person.
    """
    chosen: dict[object, Passage] = {}
    for one in _say_once(sorted(passages, key=lambda one: -rate(one.features))):
        passage = one.hit.message_id, one.paragraph
        chosen.setdefault(passage if several else one.hit.thread_id or one.hit.message_id, one)
    return [*chosen.values()][:MOST]


def _say_once(passages: Iterable[Passage]) -> list[Passage]:
    """Return passages without repetitions; of equal texts the first to arrive stays.

    Texts with nearly the same words go to the end, because a single word may say the opposite.
    """
    said: list[tuple[list[str], Passage]] = []
    again: list[Passage] = []
    for one in passages:
        words = _WORD.findall(one.text.lower())
        at = next((at for at, (known, _) in enumerate(said) if known == words), None)
        if at is not None:
            said[at] = words, min(said[at][1], one, key=lambda one: one.arrived_at)
        elif any(overlap({*known}, {*words}) for known, _ in said):
            again.append(one)
        else:
            said.append((words, one))
    return [*(one for _, one in said), *again]
