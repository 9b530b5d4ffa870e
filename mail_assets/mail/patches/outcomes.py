"""Read what a mail says became of a patch, and find the patches that it is about.

Two kinds of mail say so: those of programs (b4, patchwork's bot, pr-tracker, tip-bot), which name
commits, and short answers of people; see verdicts.py. Only new text counts. No outcome is better
than a guess.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import own_parts
from mail_assets.mail.patches.subjects import PatchSubject, fold_title, read_subject
from mail_assets.mail.patches.verdicts import (
    HINT,
    SHA,
    SOME,
    find_nak_lines,
    find_shas,
    read_sentence,
)
from mail_assets.text.sentences import Span, find_sentences

#: Raise it when the same mail would say something else.
OUTCOMES_VERSION = "12"

#: Outcomes that a mail may state.
OUTCOMES = {
    "applied": "the patch was applied, queued, committed or pushed",
    "pulled": "the pull request was merged",
    "rejected": "somebody refuses the patch",
    "withdrawn": "its author takes it back",
    "superseded": "its author replaces it by another posting",
    "resend-requested": "somebody asks for a new posting",
}

#: Characters of new text that are read for sentences: verdicts stand at the start or the end.
_READ = 20_000
#: A long id of a commit has too few letters for a line of prose.
_LONG_ID = re.compile(r"(?<![\w./])[0-9a-f]{20,64}(?![\w/])")
_SMILEY = re.compile(r"(?<=\S)\s[:;]-?[)D]\s+(?=[A-Z])")
#: Patches that one mail may name.
_MOST_ENTRIES = 500


class OutcomeStatement(NamedTuple):
    """A statement about patches; body[start:end] says it.

    Without `title` and `parts` it is about the patch that the mail answers, with `whole` about all
    patches of that posting.
    """

    outcome: str  # a key of OUTCOMES
    start: int
    end: int
    shas: tuple[str, ...] = ()  # in lower case, 7 to 40 digits
    title: str = ""  # of the patch, as the mail names it
    parts: tuple[int, ...] = ()
    whole: bool = False
    firm: bool = True  # see Verdict


class PostedPatch(NamedTuple):
    """A patch or cover letter of one posting, as far as statements about it need."""

    message_id: str
    place: int
    is_cover: bool
    part: int | None
    title: str


def read_outcomes(
    body: str, segments: Sequence[Segment], subject: str = ""
) -> list[OutcomeStatement]:
    """Return what a mail says became of patches, in its order.

    What it says of another version than its subject names is left out.
    """
    spans = [(part.start, part.end) for part in segments if part.kind in {"text", "signature"}]
    if not any(HINT.search(body, start, min(end, start + _READ)) for start, end in spans):
        return []
    own = own_parts(body, segments)
    spans = [(part.start, part.end) for part in own if part.kind in {"text", "signature"}]
    text = _blank_others(body, spans)
    if found := _read_programs(text):
        return found
    statements = [*_read_people(body, spans, read_subject(subject))]
    if SOME.search(text):
        statements = [one for one in statements if one.outcome != "applied" or one.parts]
    head = next((one for one in statements if one.outcome == "applied" and not one.parts), None)
    entries = [*_read_entries(text, head.end)] if head else []
    if not entries:
        return _choose(statements)
    if any(one.shas for one in entries):  # b4 found no commit of the others in that tree
        entries = [x for x in entries if x.shas or not _NO_COMMIT.search(text, x.start, x.end)]
    return [one for one in entries if one.outcome] or _choose(
        [one for one in statements if one.outcome != "applied"]
    )


def _blank_others(body: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the body with all but some spans, of whole lines, as blanks: offsets stay."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [" " * (start - at - 1), "\n" * (start > at), body[start:end]]
        at = end
    return "".join(pieces)


def _read_people(
    body: str, spans: Sequence[tuple[int, int]], about: PatchSubject
) -> Iterator[OutcomeStatement]:
    left = _READ
    prose = _LONG_ID.sub(lambda found: "x" * len(found[0]), body)
    for start, end in spans:
        if left <= 0:
            return
        end = min(end, start + left)
        left -= end - start
        for first, last in find_nak_lines(body[start:end]):
            yield OutcomeStatement("rejected", start + first, start + last)
        sentences = [x for one in find_sentences(prose, start, end) for x in _cut(prose, one)]
        texts = ["", *(body[one.start : one.end] for one in sentences), "", ""]
        for place, one in enumerate(sentences, 1):
            after = f"{texts[place + 1]} {texts[place + 2]}"
            for said in read_sentence(texts[place], texts[place - 1], after, body[one.end : end]):
                if about.is_patch and said.version not in {None, about.version or 1}:
                    continue
                yield OutcomeStatement(
                    said.outcome,
                    one.start,
                    one.end,
                    said.shas,
                    parts=said.parts,
                    whole=said.whole,
                    firm=said.firm,
                )


def _cut(text: str, sentence: Span) -> Iterator[Span]:
    """Yield a sentence in its parts, where a smiley ends one."""
    at = sentence.start
    for smiley in _SMILEY.finditer(text, at, sentence.end):
        yield Span(at, smiley.start())
        at = smiley.end()
    yield Span(at, sentence.end)


def _choose(statements: Sequence[OutcomeStatement]) -> list[OutcomeStatement]:
    """Return statements once each, without those that others of the mail make pointless."""
    once = {(x.outcome, x.parts, x.whole): x for x in reversed(statements)}
    kinds = {x.outcome for x in once.values()}
    pointless = set()
    if "superseded" in kinds:
        pointless.add("withdrawn")
    if kinds & {"applied", "rejected"}:
        pointless.add("resend-requested")
    return [x for x in reversed(once.values()) if x.outcome not in pointless]


# Programs ---------------------------------------------------------------------------------------

_PULLED = re.compile(
    rf"has been merged into \S[^\n]{{0,200}}:\n\s{{0,20}}https?://\S{{1,300}}/(?P<sha>{SHA})\b"
)
_COMMIT_ID = re.compile(
    r"The following commit has been merged into the [^\n]{1,120}:\s+"
    rf"Commit-ID:\s+(?P<sha>{SHA})\b"
)
_BOT_HEAD = re.compile(
    r"^(?:This (?:patch|series|pull request) (?:was|has been)|These patches were) "
    r"(?:applied|merged)[^\n]{0,300}\n?[^\n]{0,200}:\s*$",
    re.M,
)
_BOT_SUMMARY = re.compile(r"Here is the summary with links:\s*\n")
# "[v2,3/9] title", "- [net,4/9] title"
_ENTRY = re.compile(
    r"[ \t]{0,8}(?:[-*] )?\[(?P<label>(?:[\w./-]{1,30}[, ]\s{0,3}){0,4})(?P<part>\d{1,4})/\d{1,4}\]"
    r"[ \t]+(?P<title>\S[^\n]{0,400})$",
    re.M,
)
_SINGLE_ENTRY = re.compile(
    r"^[ \t]{0,8}[-*] (?:\[[^\[\]\n]{0,40}\] )?(?P<title>\S[^\n]{0,400})$", re.M
)
_NO_COMMIT = re.compile(r"\((?:no|did not find)[^)\n]{0,40}\)", re.I)
_TAKEN_OUT = re.compile(
    r"\b(?:except|excluding|but|not|without|fail\w*|skipp?\w*|dropp?\w*|missing|left out|rejected|"
    r"remaining)\b|n['’]t\b",
    re.I,
)
_NEAR = 200  # characters above an entry that may have the line that leads to it
_BELOW = 3  # lines below a title that may name its commit; a mail server may wrap a title


def _read_programs(text: str) -> list[OutcomeStatement]:
    if match := _PULLED.search(text):
        return [OutcomeStatement("pulled", *match.span(), (match["sha"],), whole=True)]
    if match := _COMMIT_ID.search(text):
        return [OutcomeStatement("applied", *match.span(), (match["sha"],))]
    head = _BOT_HEAD.search(text)
    summary = _BOT_SUMMARY.search(text, head.end()) if head else None
    if not head or not summary:
        return []
    outcome = "pulled" if "pull request" in head[0] else "applied"
    entries = [*_read_entries(text, summary.end())]
    if not entries and (single := _SINGLE_ENTRY.search(text, summary.end())):
        entries = [_read_entry(text, single, ())]
    return [entry._replace(outcome=outcome) for entry in entries if entry.shas]


def _read_entries(text: str, start: int) -> Iterator[OutcomeStatement]:
    """Yield the patches that a thank-you lists: "[2/5] title", and below "commit: SHA" or a URL.

    Those below a line that takes some out, such as "all but:", have no outcome.
    """
    is_taken = True
    for number, match in enumerate(_ENTRY.finditer(text, start)):
        if number >= _MOST_ENTRIES:
            return
        above = text[max(start, match.start() - _NEAR) : match.start()].rstrip()
        line = above.rpartition("\n")[2].strip()
        if line and not _ENTRY.fullmatch(line) and line.endswith(":"):
            is_taken = not _TAKEN_OUT.search(line)
        entry = _read_entry(text, match, (int(match["part"]),))
        yield entry if is_taken or entry.shas else entry._replace(outcome="")
        start = match.end()


def find_listed_title(text: str) -> str:
    """Return the title of "[2/5] title" in a list of applied patches, "" of other text."""
    entry = _ENTRY.match(text)
    return entry["title"].strip() if entry else ""


def _read_entry(text: str, match: re.Match[str], parts: tuple[int, ...]) -> OutcomeStatement:
    title, end = match["title"].strip(), match.end()
    shas: tuple[str, ...] = ()
    for line in text[end + 1 : end + 1_000].split("\n")[:_BELOW]:
        if not line.strip() or _ENTRY.match(line):
            break
        end += 1 + len(line)
        shas = find_shas(line)
        if shas or _NO_COMMIT.search(line):
            break
        title = f"{title} {line.strip()}"
    return OutcomeStatement("applied", match.start(), end, shas, title, parts)


# To the right patch -----------------------------------------------------------------------------


def find_targets(
    statement: OutcomeStatement, posting: Collection[PostedPatch], answered: PostedPatch
) -> list[PostedPatch]:
    """Return the patches of a posting that a statement is about; none where it is unclear.

    `answered` is the patch or cover letter of the posting that the mail answers. A mail that has
    several patches is answered as a whole.
    """
    patches = [one for one in posting if not one.is_cover]
    if statement.title:
        return _find_titled(statement, patches)
    if statement.parts:
        return [one for one in patches if one.part in statement.parts]
    if statement.whole or answered.is_cover:
        return patches or [answered]
    return [one for one in patches if one.message_id == answered.message_id]


def _find_titled(
    statement: OutcomeStatement, patches: Collection[PostedPatch]
) -> list[PostedPatch]:
    """Return the patch of a title; of that part, if a title of half the words has it."""
    key = fold_title(statement.title)
    same = [one for one in patches if fold_title(one.title) == key]
    if len(same) > 1:
        same = [one for one in same if one.part in statement.parts]
    if same or not statement.parts:
        return same
    words = _words(statement.title)
    near = [
        one
        for one in patches
        if one.part in statement.parts and len(words & _words(one.title)) * 2 > len(words)
    ]
    return near if len(near) == 1 else []


def _words(title: str) -> set[str]:
    return {*re.findall(r"\w+", title.casefold())}
