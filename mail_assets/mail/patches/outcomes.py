"""Read outcomes of patches from mail, and decide the state of each patch of a series.

Two kinds of mail state outcomes: mail of programs (b4, patchwork's bot, pr-tracker, tip-bot), which
names commits, and short answers of people; see verdicts.py. Only new text counts. No outcome is
better than a guess.

Each state except `open` has a reason: a sentence of a mail, or the next version. These people may
state it:

* `applied`: anybody. The author of the patch needs firm words ("pushed"), or must answer the patch
  itself: below a review the author may mean the suggestion;
* `rejected`: anybody except the author, in an answer to the patch itself;
* `withdrawn`, `superseded`: the sender or author of the patch.

A newer version supersedes a patch only if its sender sent or wrote that patch: nobody else can
remove a patch from the list of open ones. Statements of the patch's sender or author, and of people
with standing, have priority over others. If a stranger took over a patch, only people with standing
can state that this version was applied.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import own_parts
from mail_assets.mail.patches.commits import SHA, find_shas
from mail_assets.mail.patches.series import (
    Member,
    PatchKey,
    Posting,
    SeriesPatch,
    find_taken_over,
    is_sender_of,
)
from mail_assets.mail.patches.subjects import PatchSubject, fold_title, read_subject
from mail_assets.mail.patches.verdicts import (
    HINT,
    SOME,
    find_nak_lines,
    read_sentence,
)
from mail_assets.text.sentences import Span, find_sentences

#: Raise it when other outcomes would be read from the same mail.
OUTCOMES_VERSION = "19"

#: Outcomes that a mail may state.
OUTCOMES = {
    "applied": "the patch was applied, queued, committed or pushed",
    "pulled": "the pull request was merged",
    "rejected": "somebody refuses the patch",
    "withdrawn": "its author takes it back",
    "superseded": "its author replaces it by another posting",
    "resend-requested": "somebody asks for a new posting",
}

#: Characters of new text that are searched for sentences: verdicts are at the start or the end.
_READ = 20_000
#: A long id of a commit. It is replaced by letters, because its line would not count as prose.
_LONG_ID = re.compile(r"(?<![\w./])[0-9a-f]{20,64}(?![\w/])")
_NAMED_COMMIT = re.compile(rf"\b{SHA} \([\"“]([^\"”\n]{{5,200}})[\"”]\)")
_SMILEY = re.compile(r"(?<=\S)\s[:;]-?[)D]\s+(?=[A-Z])")
#: Patches that one mail may name.
_MOST_ENTRIES = 500


class OutcomeStatement(NamedTuple):
    """A statement about patches, at body[start:end].

    Without `title` and `parts` it is about the patch that the mail answers; with `whole`, about all
    patches of that posting.
    """

    outcome: str  # a key of OUTCOMES
    start: int
    end: int
    shas: tuple[str, ...] = ()  # in lower case, 7 to 40 digits; or revisions, as "r1931"
    title: str = ""  # of the patch, as the mail names it
    parts: tuple[int, ...] = ()
    whole: bool = False
    firm: bool = True  # see Verdict


def read_outcomes(
    body: str, segments: Sequence[Segment], subject: str = ""
) -> list[OutcomeStatement]:
    """Return the statements of a mail about patches, in its order.

    Statements about another version than that of its subject, or about a commit with another title,
    are left out.
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
    """Return the body with blanks outside of some spans of whole lines; offsets do not change."""
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
                if said.shas and about.is_patch and about.part != 0:
                    commit = _NAMED_COMMIT.search(" ".join(texts[place].split()))
                    if commit and not _is_near(commit[1], about.title):
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
    """Yield a sentence, split after smileys."""
    at = sentence.start
    for smiley in _SMILEY.finditer(text, at, sentence.end):
        yield Span(at, smiley.start())
        at = smiley.end()
    yield Span(at, sentence.end)


def _choose(statements: Sequence[OutcomeStatement]) -> list[OutcomeStatement]:
    """Return statements once each, without those that others of the mail make redundant."""
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
_NEAR = 200  # characters above an entry that may have the line that introduces it
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
    """Yield the patches listed in a thank-you: "[2/5] title", and below "commit: SHA" or a URL.

    Patches below a line that excludes some, such as "all but:", have no outcome.
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
    """Return the title of "[2/5] title" in a list of applied patches, "" for other text."""
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
    statement: OutcomeStatement, posting: Posting, answered: str
) -> Sequence[SeriesPatch]:
    """Return the patches of a posting that a statement is about; none if that is unclear.

    `answered` is the Message-ID of its mail that is answered. An answer to a mail with several
    patches is about all of them.
    """
    patches = [one for one in posting.patches if not one.is_cover]
    if statement.title:
        return _find_titled(statement, patches)
    if statement.parts:
        return [one for one in patches if one.part in statement.parts]
    first = next((one for one in posting.patches if one.key[0] == answered), None)
    if statement.whole or first is None or first.is_cover:
        return patches or posting.patches
    return [one for one in patches if one.key[0] == answered]


def _find_titled(
    statement: OutcomeStatement, patches: Collection[SeriesPatch]
) -> list[SeriesPatch]:
    """Return the patch with a title; or the part, if over half of the title's words agree."""
    key = fold_title(statement.title)
    same = [one for one in patches if fold_title(one.title) == key]
    if len(same) > 1:
        same = [one for one in same if one.part in statement.parts]
    if same or not statement.parts:
        return same
    near = [
        one
        for one in patches
        if one.part in statement.parts and _is_near(statement.title, one.title)
    ]
    return near if len(near) == 1 else []


def _is_near(title: str, other: str) -> bool:
    """Return whether a title has more than half of its words in common with another."""
    words = _words(title)
    return len(words & _words(other)) * 2 > len(words)


def _words(title: str) -> set[str]:
    return {*re.findall(r"\w+", title.casefold())}


#: States of a patch.
STATES = ("open", "applied", "superseded", "rejected", "withdrawn")


class Said(NamedTuple):
    """A statement, the mail that has it, and the patch mail that this mail answers."""

    message_id: str
    number: int  # among the statements of the mail
    statement: OutcomeStatement
    sender: str  # address in lower case
    sender_name: str  # folded
    said_at: float  # seconds since 1970
    answered: str  # Message-ID of the nearest patch mail above it
    is_direct: bool  # it answers that mail itself


class PatchState(NamedTuple):
    """State of a patch; `said` is the reason, or `newer` is the version that supersedes it."""

    state: str
    said: Said | None = None
    newer: PatchKey | None = None

    @property
    def shas(self) -> tuple[str, ...]:
        """The commits that the reason names."""
        return self.said.statement.shas if self.said and self.state == "applied" else ()


_OPEN = PatchState("open")


def decide_states(
    postings: Sequence[Posting],
    members: Iterable[Member],
    said: Iterable[Said],
    deciders: Set[str],
) -> dict[PatchKey, PatchState]:
    """Return the state of each patch of a series by what mails `said`; `deciders` have standing."""
    patches = {patch.key: patch for posting in postings for patch in posting.patches}
    about = _find_statements(postings, said)
    chains: dict[PatchKey, list[SeriesPatch]] = defaultdict(list)
    for member in members:
        chains[member.chain].append(patches[member.key])
    states: dict[PatchKey, PatchState] = {}
    for some in chains.values():
        some.sort(key=lambda one: one.order)
        taken_over = find_taken_over(some)
        for place, patch in enumerate(some):
            heard = _with_resent(patch, some[:place], about)
            if patch.key in taken_over and patch.sender not in deciders:
                heard = [x for x in heard if x.sender in deciders or not _says_applied(x)]
            states[patch.key] = _decide(patch, some[place + 1 :], heard, deciders)
        _supersede_taken_over(some, states)
    for posting in postings:
        if posting.cover and states[posting.cover.key] == _OPEN:
            states[posting.cover.key] = _decide_cover(posting, states)
    return states


def _find_statements(
    postings: Sequence[Posting], said: Iterable[Said]
) -> Mapping[PatchKey, list[Said]]:
    """Return the statements about each patch, oldest first."""
    home = {x: one for one in postings if (x := one.unlabelled_cover)}
    home |= {patch.key[0]: posting for posting in postings for patch in posting.patches}
    about: dict[PatchKey, list[Said]] = defaultdict(list)
    for one in sorted(said, key=lambda x: (x.said_at, x.message_id, x.number)):
        if posting := home.get(one.answered):
            for target in find_targets(one.statement, posting, one.answered):
                about[target.key].append(one)
    return about


def _decide(
    patch: SeriesPatch,
    later: Sequence[SeriesPatch],
    about: Sequence[Said],
    deciders: Set[str],
) -> PatchState:
    newer = next((one for one in later if is_sender_of(one.sender, one.sender_name, patch)), None)
    own = {x: is_sender_of(x.sender, x.sender_name, patch) for x in about}
    known = [x for x in about if own[x] or x.sender in deciders]
    found = _decide_by(known, own, newer)
    return found if found != _OPEN else _decide_by([x for x in about if x not in known], own, None)


def _decide_by(
    about: Sequence[Said], own: Mapping[Said, bool], newer: SeriesPatch | None
) -> PatchState:
    applied = [x for x in about if _says_applied(x) and (_is_plain(x) or not own[x])]
    named = [x for x in applied if x.statement.shas]
    if named:
        return PatchState("applied", named[-1])
    if newer:
        return PatchState("superseded", newer=newer.key)
    if applied:
        return PatchState("applied", applied[-1])
    for one in reversed(about):
        outcome = one.statement.outcome
        if own[one] and outcome in {"withdrawn", "superseded"}:
            return PatchState(outcome, one)
        if not own[one] and outcome == "rejected" and one.is_direct:
            return PatchState("rejected", one)
    return _OPEN


def _with_resent(
    patch: SeriesPatch, before: Sequence[SeriesPatch], about: Mapping[PatchKey, Sequence[Said]]
) -> list[Said]:
    """Return the statements about a patch, and later ones about earlier mail with the same diff."""
    found = [*about.get(patch.key, ())]
    for one in before:
        if patch.patch_id and one.patch_id == patch.patch_id:
            said = about.get(one.key, ())
            found += [x for x in said if _says_applied(x) and x.said_at > patch.sent_at]
    return sorted(found, key=lambda x: (x.said_at, x.message_id, x.number))


def _supersede_taken_over(chain: Sequence[SeriesPatch], states: dict[PatchKey, PatchState]) -> None:
    """Let a version by somebody else that was applied supersede the open ones before it."""
    applied: PatchKey | None = None
    for patch in reversed(chain):
        state = states[patch.key].state
        if state == "applied":
            applied = patch.key
        elif state == "open" and applied:
            states[patch.key] = PatchState("superseded", newer=applied)


def _is_plain(said: Said) -> bool:
    """Return whether a statement of a patch's author is about the patch, not a suggestion."""
    return said.statement.firm or said.is_direct


def _says_applied(said: Said) -> bool:
    return said.statement.outcome in {"applied", "pulled"}


def _decide_cover(posting: Posting, states: Mapping[PatchKey, PatchState]) -> PatchState:
    """Return the state that all patches of a posting have, with the reason of the last one."""
    parts = [states[patch.key] for patch in posting.patches if not patch.is_cover]
    complete = len(parts) == posting.first.parts
    if complete and len({one.state for one in parts}) == 1 and parts[0].state != "superseded":
        return parts[-1]
    return _OPEN
