"""Find the statements of decisions in a thread, and build a record of decisions from them.

Statements are found when a summary is made, and stored with their positions. The record is built
from them and the commits known at that time, and contains nothing else.

Only new text counts: no quote, forwarded mail, diff or signature. A message that joined the thread
by its subject states no decision, nor does the message that opens the thread. A message with
another subject than the opening one is about another matter.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from mail_assets.mail.message.subjects import find_topic, has_prefix
from mail_assets.mail.patches.outcomes import OutcomeStatement, read_outcomes
from mail_assets.mail.patches.subjects import read_subject
from mail_assets.summaries.acts import TRIAL, Act, find_notices, is_open, is_plain, read_act
from mail_assets.summaries.summary import MessageText, Statement, StatementPart
from mail_assets.text.sentences import Span, find_item_text, find_sentences

#: Part of the fingerprint: raise it when other statements are found.
DECISIONS_VERSION = "10"

#: Limits of statements per thread: the last decisions and the first alternatives are kept.
MOST_DECISIONS, MOST_ALTERNATIVES = 12, 6

_READ = 20_000  # characters of a message's new text
_NEAR = 200  # characters after a sentence in which to look for a trial

#: Addresses of programs and list owners. Of their mail only programs' notices count.
_PROGRAM = re.compile(
    r"(?i)(?:.{0,60}[._+-])?(?:no-?reply|do-?not-?reply|bugzilla(?:-daemon)?|daemon|mailer-daemon|"
    r"(?:\w{1,20}-)?bot|patchwork|notifications?|buildbot|jenkins|svn|cvs|git|commits?|trac|"
    r"mailman|majordomo|listserv|postmaster|owner|request|bounces?|admin)(?:[+-][^@]{0,60})?@"
)
# the text after such a line is by somebody else, however it is marked
_OTHERS = re.compile(
    r"(?im)^[^\S\n]{0,8}(?:[-_=*]{2,20}[^\n]{0,20}(?:forwarded|original message|weitergeleitet|"
    r"transf[eé]r|reenviad|encaminhad)|begin forwarded|[^\n]{0,80}\b(?:wrote|writes|said|says|"
    r"schrieb|sagte|a écrit|escribió|escreveu|написал[аи]?|пишет)[^\S\n]{0,3}:[^\S\n]{0,8}$)"
)
_LED = re.compile(r":[^\S\n]{0,8}\n\s{0,40}\Z")
_HEADING = re.compile(r"(?i)(?:decision|resolution|result|outcome|update)s?:\s{0,40}\Z")
# a line that announces points: "In the end we agreed on the following:"
_ANNOUNCING = re.compile(
    r"(?i)[^\S\n]{0,8}(?P<lead>(?:(?:to sum up|to summari[sz]e|in summary|in conclusion|in the end|"
    r"here is what|here['’]s what|this is what|what)[, ]{1,2})?(?P<act>[^:\n]{3,80}?))"
    r"(?: (?:on|upon|that|to do|to))?(?: (?:the following|as follows|this|these)(?: \w{1,20})?)?"
    r":\s*"
)
_DECISIONS = re.compile(
    r"(?i)(?:the |our |final )?(?:decision|resolution)s?(?: (?:is|are|was|were))?"
)
_MOST_POINTS = 1_000  # characters of a line that announces points, and of these
_APPLIED = frozenset({"applied", "pulled"})
_PUBLISHED = re.compile(
    r"(?i)\b(?:pushed|committed|landed|checked in)\b|"
    r"\bapplied (?:to|in|on)(?: the)? [\w./-]{1,40}(?: branch| tree|:)"
)
# an author's own branch; a place without a name may be the project's
_OWN_BRANCH = re.compile(
    r"(?i)\balso pushed\b|\bpushed\b[^.;\n]{0,30} to (?!(?:the )?(?:\w{1,20} )?(?:master|main|"
    r"trunk|head|upstream|mainline|pending|next|-next|cvs|svn|git|repo|repository|tree|stable|devel)\b)"
    r"|\bpushed\b[^.;\n]{0,30} to:"
)
_PERHAPS = re.compile(
    r"(?i)\s{1,4}(?:perhaps|maybe|possibly|(?:it|that|this) (?:might|may|could)\b)"
)
_PATCH_SUBJECT = re.compile(r"(?i)\[[^\]\n]{0,40}\bpatch")
_PULL_SUBJECT = re.compile(r"(?i)\[[^\]\n]{0,40}\bpull\b")
_TAKEN_BACK = re.compile(
    r"(?i)\bbut\b[^.;\n]{0,40}(?:n['’]t|\bnot|\bnever|\byet|\bhold|\bwait)\b|"
    r"\bby (?:accident|mistake)\b|\b(?:accidentally|mistakenly)\b|"
    r"\b(?:to|on|onto|in) my (?:\d|v\d|kernel|own|clone|copy|checkout|source|sandbox|install\w*|"
    r"build|test\w*|work\w*|version|local|fork|private)"
)
_TRIED = re.compile(
    r"(?i)(?:so |ok(?:ay)?,? |and )?(?:i|we)\b[^.\n]{0,40}\b(?:applied|merged|pulled)\b"
)
_OBJECTION = re.compile(r"(?i)\bna(?:c?k)")  # by a reviewer, who may not be the one who decides
_ALTERNATIVE = re.compile(
    r"(?i)(?:(?:and|but|so|or|well)[ ,]{1,2})?(?:alternatively, ?\w|"
    r"(?:one|another|an|the (?:only )?other|(?:a|the) (?:second|third)|a different|"
    r"the(?= alternative))"
    r"(?: (?:other|possible|good|simple|simpler|better|easy|obvious|third|second)){0,2} "
    r"(?:alternative|option|approach|possibility|solution|way to (?:do|solve|fix|handle) (?:this|"
    r"it|that)) (?:here )?(?:is|would be|might be|could be|was)\b|"
    r"option (?:[a-d]|\d)[):.] ?\w|"
    r"(?:we|you|one) (?:could|might|can) (?:also )?(?:instead|alternatively)\b)"
)


def find_statements(messages: Sequence[MessageText]) -> tuple[Statement, ...]:
    """Return alternatives, then the decisions that a thread states, in the order of time."""
    people = _People(messages)
    decisions = [
        (message.sent_at, number, found)
        for number, message in enumerate(messages)
        if _may_decide(messages, message)
        for found in _find_decisions(message, people)
    ]
    if not decisions:
        return ()
    decisions.sort(key=lambda one: one[:2])
    kept = decisions[-MOST_DECISIONS:]
    above = _ancestors(messages, {one.message_id for _, _, one in kept})
    alternatives = [
        one
        for message in messages
        if message.message_id in above and not message.joined
        for one in _find_alternatives(message)
    ]
    return (*alternatives[:MOST_ALTERNATIVES], *(one for _, _, one in kept))


def quote_statement(
    messages: Sequence[MessageText], message: MessageText, quotation: str, act: str
) -> Statement | None:
    """Return the statement that a quotation copies word for word; None if it is not a valid one.

    `act` is decided, reverted or alternative. A question, a plan or a condition decides nothing.
    """
    wanted, spans = _fold(quotation), _own_spans(message)
    if message.joined or not (act == "alternative" or _may_decide(messages, message)):
        return None
    for span in _find_sentences(message.body, spans):
        text = message.body[span.start : span.end]
        if _fold(text) == wanted and is_plain(text) and not _is_led(message.body, spans, span):
            if act == "alternative":
                return _state(message, span, "alternative", Act(""))
            return None if is_open(text) else _state(message, span, "decision", Act(act))
    return None


def _may_decide(messages: Sequence[MessageText], message: MessageText) -> bool:
    """Return whether a message is an answer within the topic of its thread."""
    if message.joined or (message is messages[0] and not has_prefix(message.subject)):
        return False
    topic, opened = find_topic(message.subject), find_topic(messages[0].subject)
    is_same = topic in opened or opened in topic
    # a series has many subjects; a tracker shows the new title of a report
    return is_same or read_subject(message.subject).is_patch or bool(_PROGRAM.match(message.sender))


def _fold(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


class _People:
    """Authors of a thread: the one who began it, and those who posted patches, with times."""

    def __init__(self, messages: Sequence[MessageText]) -> None:
        self._posted: dict[str, dt.datetime] = {}
        # without answers, in which a diff may be a suggestion
        self._sent: dict[str, dt.datetime] = {}
        self._began: set[str] = set()
        for number, one in enumerate(messages):
            is_answer = has_prefix(one.subject)
            if not number and not is_answer:
                self._began = _names(one)
            if one.has_patch or (not is_answer and _PATCH_SUBJECT.search(one.subject)):
                for found in (self._posted,) if is_answer else (self._posted, self._sent):
                    for name in _names(one):
                        found[name] = min(one.sent_at, found.get(name, one.sent_at))

    def has_sent(self, message: MessageText) -> bool:
        """Return whether the author posted a patch before this message, not in an answer."""
        return any(message.sent_at > self._sent.get(x, message.sent_at) for x in _names(message))

    def has_posted(self, message: MessageText) -> bool:
        """Return whether the author posted a patch before this message."""
        return any(
            message.sent_at > self._posted.get(name, message.sent_at) for name in _names(message)
        )

    def may_be_author(self, message: MessageText) -> bool:
        """Return whether the author may have posted the topic; true if the opening is missing."""
        return not self._began or self.is_author(message)

    def is_author(self, message: MessageText) -> bool:
        """Return whether the author posted a patch before, or began the thread."""
        return self.has_posted(message) or not self._began.isdisjoint(_names(message))


def _names(message: MessageText) -> set[str]:
    return {message.author, message.sender.lower()} - {""}


def _find_decisions(message: MessageText, people: _People) -> Iterator[Statement]:
    spans = _own_spans(message)
    verdicts = read_outcomes(message.body, message.segments, message.subject)
    stated: Iterable[tuple[Span, Act]]
    if _PROGRAM.match(message.sender):
        stated = _find_notices(message, spans)
    else:
        acts = _find_acts(message, spans, verdicts, people)
        stated = chain(_find_points(message.body, spans), acts)
    seen: set[str] = set()
    for span, act in (*_find_reports(spans, verdicts), *stated):
        if act.outcome not in seen:
            seen.add(act.outcome)
            yield _state(message, span, "decision", act)


def _find_reports(
    spans: Sequence[Span], verdicts: Sequence[OutcomeStatement]
) -> Iterator[tuple[Span, Act]]:
    """Yield reports about patches by programs such as patchwork, with the commit."""
    for one in verdicts:
        is_own = any(first <= one.start and one.end <= last for first, last in spans)
        if is_own and one.outcome in _APPLIED and (one.title or one.outcome == "pulled"):
            yield Span(one.start, one.end), Act("applied")


def _find_notices(message: MessageText, spans: Sequence[Span]) -> Iterator[tuple[Span, Act]]:
    for start, end in spans:
        for first, last, outcome in find_notices(message.body, start, end):
            yield Span(first, last), Act(outcome)


def _find_points(body: str, spans: Sequence[Span]) -> Iterator[tuple[Span, Act]]:
    """Yield lines that announce a list of decisions, such as "We decided:"."""
    for start, end in spans:
        place = start
        for line in body[start:end].splitlines(keepends=True):
            announcing = _ANNOUNCING.fullmatch(line)
            if announcing and (last := _end_of_points(body, place + len(line), end)):
                said = announcing["act"]
                act = Act("decided") if _DECISIONS.fullmatch(said) else read_act(f"{said} to")
                first = place + announcing.start("lead")
                is_led = _is_led(body, spans, Span(first, last))
                if act and is_plain(announcing["lead"]) and not is_led:
                    yield Span(first, last), act
            place += len(line)


def _end_of_points(body: str, start: int, end: int) -> int:
    """Return the end of a list that begins at `start`; 0 if there is none or an item asks."""
    whole, last, place, is_below_blank = 0, 0, start, False
    for line in body[start:end].splitlines(keepends=True):
        text, is_item = line.rstrip(), find_item_text(line) > 0
        goes_on = last > 0 and (line[0].isspace() or not is_below_blank)
        if text and not is_item and not goes_on:
            break
        if text.endswith("?"):
            return 0
        whole = last if is_item else whole
        place += len(line)
        last = place - len(line) + len(text) if text else last
        if last - start > _MOST_POINTS:
            return whole
        is_below_blank = not text
    return last


def _find_acts(
    message: MessageText,
    spans: Sequence[Span],
    found: Sequence[OutcomeStatement],
    people: _People,
) -> Iterator[tuple[Span, Act]]:
    body = message.body
    verdicts = {(one.start, one.end): one for one in found if not one.title}
    for span in _find_sentences(body, spans):
        text = body[span.start : span.end]
        verdict = verdicts.get((span.start, span.end))
        if _PERHAPS.match(body, span.end):
            continue
        if verdict and _TRIED.match(text) and TRIAL.search(body, span.end, span.end + _NEAR):
            continue
        act = _judge(verdict, text, message, people) if verdict else read_act(text)
        if act and act.outcome == "applied" and not verdict and people.is_author(message):
            act = None if _OWN_BRANCH.search(text) else act
        if not act or not is_plain(text) or _is_led(body, spans, span) or _is_torn(body, span):
            continue
        if act.outcome != "rejected" or not people.is_author(message):
            yield span, act


def _judge(
    verdict: OutcomeStatement, text: str, message: MessageText, people: _People
) -> Act | None:
    """Return the act of a verdict on a patch, None if its author cannot decide that."""
    if _TAKEN_BACK.search(text):
        return None
    if verdict.outcome in _APPLIED:
        if _PULL_SUBJECT.search(message.subject) and people.is_author(message):
            return None  # pushed for others to pull
        # an author who writes "applied" has accepted a suggestion
        if not verdict.firm and people.may_be_author(message):
            return None
        is_published = _PUBLISHED.search(text) and not _OWN_BRANCH.search(text)
        return Act("applied") if is_published or not people.is_author(message) else None
    if verdict.outcome == "rejected":
        return Act("rejected", firm=not _OBJECTION.search(text))
    is_own = verdict.outcome == "withdrawn" and people.has_sent(message)
    return Act("withdrawn") if is_own else None


def _own_spans(message: MessageText) -> list[Span]:
    """Return the spans of new text before the first text that may be somebody else's."""
    own: list[Span] = []
    left = _READ
    for first, last in message.new_text:
        end = min(last, first + left)
        other = _OTHERS.search(message.body, first, end)
        own.append(Span(first, other.start() if other else end))
        left -= end - first
        if other or left <= 0:
            break
    return own


def _find_sentences(body: str, spans: Sequence[Span]) -> Iterator[Span]:
    for start, end in spans:
        yield from find_sentences(body, start, end)


def _is_led(body: str, spans: Sequence[Span], span: Span) -> bool:
    """Return whether a line that ends with a colon leads to a sentence: "Answer like this:".

    The line must be new text too: the end of a quote does not lead to an answer.
    """
    first = max((one.start for one in spans if one.start <= span.start), default=0)
    near = body[max(first, span.start - 200) : span.start]
    return _LED.search(near) is not None and _HEADING.search(near) is None


def _is_torn(body: str, span: Span) -> bool:
    """Return whether a text is only the end of a sentence, whose beginning is not prose."""
    near = body[max(0, span.start - 200) : span.start]
    above = near.rstrip()
    is_below = bool(above) and "\n\n" not in near[len(above) :].replace(" ", "")
    return body[span.start].islower() and is_below and above[-1] not in ".!?:;…)\"'>"


def _find_alternatives(message: MessageText) -> Iterator[Statement]:
    if _PROGRAM.match(message.sender):
        return
    for span in _find_sentences(message.body, _own_spans(message)):
        text = message.body[span.start : span.end]
        if _ALTERNATIVE.match(text) and is_plain(text):
            yield _state(message, span, "alternative", Act(""))


def _ancestors(messages: Sequence[MessageText], ids: set[str]) -> set[str]:
    """Return the messages that some messages answer, directly or not."""
    parents = {one.message_id: one.parent_id for one in messages}
    found: set[str] = set()
    for x in ids:
        above = parents.get(x)
        while above and above not in found:
            found.add(above)
            above = parents.get(above)
    return found


def _state(message: MessageText, span: Span, part: StatementPart, act: Act) -> Statement:
    text = message.body[span.start : span.end]
    return Statement(message.message_id, span.start, span.end, text, part, *act)


# The record -------------------------------------------------------------------------------------

#: Reason why the author of a statement may decide. "committer": committed to a repository of the
#: list before; "asked": the opening message is addressed to this person; "author": it is the
#: author's own patch.
Standing = Literal["committer", "asked", "author", ""]
#: The standings with which nobody else decides.
DECIDING = frozenset({"committer", "asked"})

#: Number of decisions before the last one to show.
MOST_EARLIER = 4
_TAKES_BACK = frozenset({"reverted", "reopened"})


class Said(NamedTuple):
    """A stored statement with its author, and the standing and the commit that shows it."""

    statement: Statement
    from_name: str
    from_email: str
    said_at: dt.datetime
    standing: Standing = ""
    sha: str = ""

    @property
    def counts(self) -> bool:
        """True for a decision that is firm or by a committer."""
        return self.statement.part == "decision" and (
            self.statement.firm or self.standing == "committer"
        )


class DecidedCommit(NamedTuple):
    """A commit of a patch in the thread; `reverted_by` is another commit of it."""

    sha: str
    repository: str
    subject: str
    committer: str
    committed_at: dt.datetime
    reverted_by: str = ""


class DecisionRecord(NamedTuple):
    """The record of a thread's decisions; each field has statements or commits, or is empty.

    `decided` is the last decision, `superseded_by` the later statement that took it back, `earlier`
    are the decisions before it.
    """

    decided: Said | None = None
    superseded_by: Said | None = None
    earlier: tuple[Said, ...] = ()
    alternatives: tuple[Said, ...] = ()
    commits: tuple[DecidedCommit, ...] = ()


def read_record(said: Sequence[Said], commits: Sequence[DecidedCommit] = ()) -> DecisionRecord:
    """Return the record of statements, given in the order of time, and of commits.

    If a committer or the asked person decided, statements of people without standing do not count.
    """
    counting = [one for one in said if one.counts]
    if any(one.standing in DECIDING for one in counting):
        counting = [one for one in counting if one.standing]
    if not counting:
        return DecisionRecord(commits=tuple(commits))
    place = _find_last(counting)
    decided = counting[place]
    later = [x for x in counting[place + 1 :] if x.statement.outcome in _TAKES_BACK]
    until = decided.said_at
    alternatives = [x for x in said if x.statement.part == "alternative" and x.said_at <= until]
    return DecisionRecord(
        decided,
        later[-1] if later else None,
        tuple(counting[max(0, place - MOST_EARLIER) : place]),
        tuple(alternatives),
        tuple(commits),
    )


def _find_last(decisions: Sequence[Said]) -> int:
    """Return the index of the last decision that does not itself take one back."""
    for place in range(len(decisions) - 1, -1, -1):
        if decisions[place].statement.outcome not in _TAKES_BACK:
            return place
    return len(decisions) - 1
