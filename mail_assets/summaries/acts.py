"""Find the act that a sentence of a mail states, such as "applied" or "decided".

There are two readings. `is_decision` is the loose one, for the outcome of a summary: any stated end
of a matter. `read_act` is the strict one, for the record of decisions: a person or a group did it.
mail/patches/verdicts.py reads verdicts on patches.

A question, a proposal, a plan, a condition, a guess, a wish, a quotation, a story or a joke states
no act.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from mail_assets.mail.patches.applied import OF_SOMEBODY, TO_TRY, is_of_something_else
from mail_assets.mail.patches.verdicts import hide_quotations

# The loose reading ------------------------------------------------------------------------------

#: Acts of people who decide on a patch, a proposal or a report.
ACTS = (
    *("applied", "committed", "pushed", "merged", "checked in", "queued", "accepted", "approved"),
    *("fixed", "reverted", "backed out", "rejected", "declined", "withdrawn", "superseded"),
    *("backpatched", "back-patched", "resolved", "closed"),
)
#: Acts that put a patch into a repository.
PUTTING = frozenset({"applied", "committed", "pushed", "merged", "queued"})
#: Further outcomes of a thing. In the first person they tell a story: "I removed the disk".
OUTCOMES = (
    *("dropped", "removed", "solved", "implemented", "released", "decided", "agreed", "postponed"),
    *("deferred", "returned with feedback", "added to the todo list", "published", "adopted"),
)
#: Acts of a group.
RESOLVES = ("agreed", "decided", "resolved", "voted", "approved", "rejected", "accepted", "adopted")
#: Objects of a decision.
THINGS = (
    *("patch", "patches", "patchset", "series", "change", "changes", "commit", "fix", "bug"),
    *("issue", "problem", "proposal", "request", "suggestion", "feature", "resolution", "ticket"),
)
PRONOUNS = ("this", "that", "it", "they", "these", "those", "both", "all")
#: Words before an act after which it does not state a decision.
HEDGES = (
    *("if", "when", "once", "until", "unless", "whether", "before", "after", "while", "where"),
    *(
        "since",
        "because",
        "(?<!marked )as",
        "than",
        "though",
        "although",
        "not",
        "never",
        "no",
        "none",
    ),
    *("nobody", "neither", "without"),
    *("think", "thought", "guess", "believe", "assume", "assumed", "suppose", "hope", "wish"),
    *("maybe", "perhaps", "probably", "apparently", "presumably", "seems", "expect", "want"),
    *("would", "could", "should", "might", "may", "will", "can", "must", "need", "says", "said"),
)
#: Words after an act that show a mere trial.
TRIALS = (
    *("locally", "on my", "to test", "to try", "and it", "and now", "and got", "and get"),
    *("and ran", "and run", "and tested", "and tried", "and rebuilt", "but it still"),
)

_ACT, _OUTCOME = "|".join(ACTS), "|".join((*ACTS, *OUTCOMES))
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|great|good|nice|thanks?|thank you|now|so|well|done|looks good|for now)"
    r"[ ,.!:;-]{0,3})?"
)
_HAVE = r"(?:have|has|had|just|now|also|already|both|all|went ahead and|'ve|’ve)"
_BEEN = r"(?:has|have|had|been|was|were|is|are|got|now|just|already|also|marked|as|finally)"
_ALONE = re.compile(
    rf"(?i){_LEAD}(?:(?:both|all|series|whole|the|patch|patches|this|{_HAVE}) ){{0,4}}"
    rf"(?P<act>{_ACT})(?=$| ?[.,;:!)(\[-]| (?:to|in|into|on|with|as|and|by|now|thanks|upstream|the|"
    r"this|that|it|both|all|these|version|patch(?:es)?|v\d+)\b)"
)
_DONE_BY = re.compile(
    rf"(?i){_LEAD}(?:(?:i|we|i['’]ve|we['’]ve) (?:{_HAVE} ){{0,3}}|"
    rf"[\w.-]{{2,20}} (?:{_HAVE} ){{1,3}})(?P<act>{_ACT})\b"
)
_RESOLVED = re.compile(
    rf"(?i){_LEAD}(?:[\w-]{{1,20}} ){{0,4}}(?:we|group|wg|committee|board|team|members|meeting) "
    rf"(?:{_HAVE} )?(?P<act>{'|'.join(RESOLVES)}) (?:to|that|on|not|the|this|unanimously|against)\b"
)
_BECAME = re.compile(
    rf"(?i){_LEAD}(?:(?:[\w'’.()-]{{1,30}} ){{0,5}}(?:{'|'.join(THINGS)})|"
    rf"(?:[\w'’]{{1,12}},? )?(?:{'|'.join(PRONOUNS)})) (?:{_BEEN} ){{1,4}}(?P<act>{_OUTCOME})\b"
)
_WITHDRAWN = re.compile(
    r"(?i)i (?:hereby )?(?P<act>withdraw|am withdrawing|am rejecting|am closing|am reverting)\b"
    r"(?! (?:my|this|the) (?:objection|na(?:c?k)|comment|question|vote|remark|concern|tag)s?\b)"
)
_FORMS = (_ALONE, _DONE_BY, _RESOLVED, _BECAME, _WITHDRAWN)
_HEDGED = re.compile(rf"(?i)\b(?:{'|'.join(HEDGES)})\b|n['’]t\b|[\"“”«»]")
_TRIED = re.compile(rf"(?i)\b(?:{'|'.join(TRIALS)})\b")


def is_decision(text: str) -> bool:
    """Return whether a sentence states a decision that has been taken.

    Three forms count: the act alone ("Applied, thanks."), with its actor ("I have just pushed
    this", "The group decided to ..."), or with its object ("The patch was rejected"). Only the
    beginning counts: a clause after "that", "since" or "after" states nothing. Questions, denials,
    conditions, plans, guesses and trials are not decisions.
    """
    plain = " ".join(text.split())
    if plain.rstrip("\"')* ").endswith("?"):
        return False
    stated = next(filter(None, (form.match(plain) for form in _FORMS)), None)
    if stated is None or _HEDGED.search(plain, 0, stated.start("act")):
        return False
    rest = plain[stated.end("act") :]
    if stated["act"].lower() in PUTTING and is_of_something_else(rest):
        return False
    return _TRIED.search(plain, stated.end()) is None


# The strict reading -----------------------------------------------------------------------------


class Act(NamedTuple):
    """An act that a sentence states; `firm`: its author or a whole group did it.

    An act that is not firm counts only if its author is known to decide.
    """

    outcome: str
    firm: bool = True


_LONGEST = 400  # characters of a sentence
_FORMATS = frozenset("\u200c\u200d")  # joiners, which scripts and emoji need
_WINK = re.compile(
    r"[;,][-~]?[)Dp](?!\w)|:-?[Pp](?!\w)|😉|😜|🙃|</?(?:sarcasm|irony|joke|grin)|\B/s\b|"
    r"(?i:\b(?:just kidding|kidding|joking|jk|yeah,? right|april fools?|not!)\W{0,3}\Z)"
)
#: Words that make a statement uncertain.
_OPEN = re.compile(
    r"(?i)\b(?:if|unless|until|whether|would|wouldn|could|should|might|may|maybe|perhaps|probably|"
    r"presumably|apparently|i (?:think|guess|believe|hope|suppose)|seems?|supposed(?:ly)?|not yet|"
    r"ago|propos\w{1,5}|suggest\w{0,5}|tentativ\w{2,4}|locally|for now|in case|easily|"
    r"some (?:time|day)|hopefully|imagine|suppose|pretend|"
    r"next (?:re-?)?(?:spin|revision|iteration|round|posting))\b|\?"
)
#: Words of people who try a patch.
TRIAL = re.compile(
    r"(?i)\b(?:still|works?|worked|tested|testing|errors?|crash\w{0,3}|fail\w{0,4}|broke\w{0,2}|"
    r"same (?:problem|issue|result)|re-?buil\w{1,4}|re-?compil\w{1,4}|reboot\w{0,3}|oops|"
    r"panic\w{0,3})\b"
)
_BEGIN = (
    r"(?:(?:ok(?:ay)?|yes|yep|great|good|nice|thanks?(?: (?:you|a lot|very much|\w{1,20}))?|thx|"
    r"(?:thanks|thank you) for [^,;.!\n]{1,40}|sorry|right|done|anyway|agreed|now|so|well|fyi|"
    r"update|hi(?: \w{1,20})?|and|looks good|found it|apologies for [^,;.!\n]{1,40}|"
    r"after (?:some|much|long|a long|further|more) (?:discussion|thought|debate)|:-?[()])"
    r"[ ,.!:;–—-]{1,5}){0,3}"
)
_DID = (
    r"(?:['’]ve| have)?(?: (?:now|just|also|already|finally|therefore|since|both|all|hereby|"
    r"gone ahead and|went ahead and)){0,3}"
)
_WE = rf"(?:i|we){_DID}"
_I_AM = r"i(?:['’]m|['’]ve| am| have)(?: now)?"
_PLACE = (
    r"(?:cvs|svn|subversion|git|hg|bzr|mercurial|bazaar|darcs|trunk|master|head|main(?: branch)?|"
    r"(?:the )?(?:\w{1,20} )?(?:repository|repo|trunk|mainline|tip)|r\d{1,7}|rev(?:ision)? \d{1,7}|"
    r"(?:commit )?[0-9a-f]{7,40}|rel\d[\w.]{0,8}|current (?:cvs|sources?))\b"
)
_PATCH = (
    r"(?:patch(?:es|set| ?set)?|series|commits?|change ?(?:set)?s?|pull request|merge request|"
    r"pr|mr)\b"
)
_MATTER = rf"(?:{_PATCH}|(?:pep|rfc)\b|proposals?\b|motion\b|request\b)"
_BUG = r"(?:bugs?|problems?|issues?|typos?)"
_TICKET = r"(?:bug|ticket|issue|bug report|report|item|pr|pull request|merge request|entry)"
_ONE = r"(?:this|the|your|my|that|these)"
_THIS = r"(?:this|it|that|these|those|them|both|all of (?:it|this|these|them)|everything)"
_FINE = r"(?:fix|fixes|change|changes|patch|patches|commit|modification|variant|version of)"
_CORE = (
    r"(?:core (?:team|group|developers)|(?:\w{1,20} )?committee|working group|"
    r"board(?: of \w{1,20})?|(?:steering )?council|release (?:team|managers?)|w3c|ietf|"
    r"(?:the )?chairs?)"
)
_TO = r"(?:to|that|on|not to|against|unanimously|in favou?r)\b"
_TAKE = r"(?:apply(?:ing)?|merg(?:e|ing)|accept(?:ing)?|commit(?:ting)?|tak(?:e|ing))"
#: Outcome -> patterns of its statements, after `_BEGIN`.
_FIRM: dict[str, tuple[str, ...]] = {
    "fixed": (
        rf"(?:(?:{_THIS}|the {_BUG}) ?(?:['’]s|is|are|has been|have been)"
        rf"(?: (?:now|already|both|all|also)){{0,2}} |{_WE} )?"
        r"(?:fixed|corrected|implemented|resolved|changed|patched|done)"
        rf"(?: (?:{_THIS}|all of these|{_ONE} {_BUG}))?(?: now)? \(?(?:in|on|as of|by) {_PLACE}",
    ),
    "applied": (
        rf"{_WE} (?:applied|committed|pushed|checked in|merged|landed|committed to {_PLACE})"
        rf"(?: (?:up|out))? (?:(?:most|some|several|all) (?:of )?(?:the |these |your )?{_PATCH}|"
        rf"(?:the|this) following(?: {_PATCH}| fix)?|(?:a|an|the|your|my|another|some) "
        rf"(?!different|other)(?:\w{{1,20}} ){{0,3}}{_FINE}\b|r\d{{1,7}}\b|revisions? \d{{1,7}}\b)",
        rf"(?:{_WE} )?(?:applied|committed|pushed|merged|queued|checked in)"
        r"(?: (?:it|this|them))?(?: now)?(?:,? and (?:then )?(?:tweaked|edited|did|made|added|"
        r"amended|noted)\b| (?:for|to) (?:v\d[\d.]{0,9}|\w{1,20} (?:branch|tree))\b)",
    ),
    "reverted": (
        r"(?:reverted|backed out|unapplied)(?= ?(?:[.,!;:(]|\Z)| "
        rf"(?:in {_PLACE}|r\d{{1,7}}\b|commit\b))",
        rf"{_WE} (?:reverted|backed out|unapplied)(?= ?(?:[.,!;:(]|\Z)| (?:{_THIS}\b|"
        rf"{_ONE}(?: \w{{1,20}}){{0,2}} {_PATCH}|in {_PLACE}|r\d{{1,7}}\b|commit\b))",
        rf"(?:no[,;]? )?{_WE} (?:removed|dropped) {_ONE}(?: \w{{1,20}})? (?:patch(?:es|set)?|"
        r"series|commits?)\b",
        rf"{_ONE} (?:\w{{1,20}} )?{_PATCH} (?:has been|is now|was) (?:reverted|backed out)\b",
    ),
    "rejected": (
        rf"{_I_AM} (?:hereby )?(?:rejecting|declining|dropping) {_ONE} (?:\w{{1,20}} )?{_MATTER}",
        rf"{_I_AM} not (?:going to )?{_TAKE} (?:{_ONE}(?: \w{{1,20}})? {_PATCH}|"
        r"(?:this|it|that)(?= ?[.,!;:]))",
        rf"i (?:won['’]t|will not) (?:be )?{_TAKE} {_ONE}(?: \w{{1,20}})? {_PATCH}",
    ),
    "closed": (
        rf"(?:{_I_AM} )?(?:clos(?:ing|ed)|mark(?:ing|ed)|resolv(?:ing|ed)) "
        rf"(?:(?:this|it|that|the|as)(?: {_TICKET})? ){{0,2}}"
        r"(?:as )?(?:wont ?fix|won['’]t ?fix|invalid|fixed|duplicate|resolved|not a bug|"
        r"works ?for ?me|works as designed|by design|rejected|completed|obsolete)\b",
        rf"{_I_AM} clos(?:ing|ed) (?:this|the) {_TICKET}\b",
    ),
    "noted": (
        rf"(?:i{_DID} )?added (?:(?:{_THIS}|the (?:item|following|entry)) )?(?:to|as) "
        r"(?:(?:the|our|a) )?todo\b",
        r"todo (?:item |list )?(?:added|updated)\b",
    ),
    "accepted": (
        rf"i(?:['’]m| am| hereby)(?: hereby)? (?:accept(?:ing)?|approv(?:e|ing)) "
        rf"(?:{_ONE}|pep)(?: \w{{1,20}})? ?(?:{_MATTER}|\d{{1,5}}\b)",
    ),
    "agreed": (
        r"(?:the|our|there (?:is|was)|there['’]s)(?: rough| clear| general| broad| strong){0,2} "
        r"consensus(?: here| on this list| on the list)? (?:(?:is|was) )?(?:that|to|not to|for|"
        r"against|in favou?r of)\b",
        r"(?:(?:on irc|at the meeting|in the meeting|yesterday|today),? )?we(?:['’]ve| have)?"
        r"(?: all| both| now| finally){0,2} (?:agreed|resolved|voted|"
        rf"reached (?:a )?consensus) {_TO}",
    ),
    "decided": (
        r"(?:(?:this|the) (?:pep|rfc|proposal|motion|amendment|resolution)|pep[ -]?\d{1,5}) "
        r"(?:is|has been)(?: now| hereby| officially| formally){0,2} (?:accepted|approved|rejected|"
        r"deferred|withdrawn|adopted|ratified|declined|postponed)\b",
        r"(?:the )?(?:vote|motion|ballot|poll)(?: has)? (?:pass(?:ed|es)|carri(?:ed|es)|"
        r"fail(?:ed|s))\b",
        rf"(?:the )?{_CORE} (?:has |have )?(?:agreed|decided|resolved|voted|approved|rejected|"
        rf"accepted|adopted|ratified)(?: this\b| the\b| it\b| your\b| \w{{1,20}} pep\b| {_TO})",
        r"(?:final )?decision(?: made| taken)?: ?\w",
        r"it (?:has been|is|is hereby) (?:decided|agreed|resolved) (?:to|that|not to)\b",
    ),
}
#: Statements that anybody may make about their own or former matters.
_WEAK = (
    r"(?:we|i)(?:['’]ve| have)?(?: now| finally)? decided (?:to|that|not to|against|on)\b",
    r"it was (?:decided|agreed|resolved) (?:to|that|not to)\b",
    r"(?:the )?(?:team|group|meeting|maintainers) (?:has |have )?(?:agreed|decided|resolved|voted) "
    + _TO,
    r"(?:wir haben|es wurde) (?:beschlossen|entschieden)\b",
    r"(?:nous avons|on a|il a été) (?:décidé|convenu) (?:de|que|d['’])",
    r"(?:hemos|se ha|foi|ficou) (?:decidido|acordado)\b|decidimos (?:que\b|\w{2,12}r\b)",
    r"(?:мы )?решили\b|(?:было )?решено\b",
    r"(?:经讨论|我们)(?:一致)?决定|[^。\n]{1,80}ことに(?:決定し|決め|決まり)ました",
)
_ABROAD = re.compile(
    rf"(?i){_BEGIN}(?:ich habe (?:das|es|ihn|den patch|den commit) (?:wieder )?(?:zurückgenommen|"
    r"rückgängig gemacht|revertiert)|(?:wieder )?(?:zurückgenommen|revertiert)|"
    r"j['’]ai (?:annulé|reverté) (?:le|ce) (?:patch|commit)|(?:he )?revertido(?: el commit)?|"
    r"revertid[oa]|откатил[аи]?(?: это)?(?: коммит| патч)?|"
    r"(?:パッチを)?(?:リバート|差し戻)しました|"
    r"已经?(?:回退|回滚|撤销|还原)(?:该|此)?(?:补丁|提交)?)[ .!。！]{0,4}"
)
#: "Since nobody seems to know, I have reverted this": the act is certain; only its reason is not.
_REASON = re.compile(
    r"(?i)\A(?:(?:so|and|ok(?:ay)?|anyway|well),? )?(?:since|because) [^,;.]{1,80}, (?=(?:i|we)\b)"
)
_FORMS_OF_ACTS = [
    *((Act(x), re.compile(rf"(?i){_BEGIN}(?:{'|'.join(forms)})")) for x, forms in _FIRM.items()),
    (Act("decided", firm=False), re.compile(rf"(?i){_BEGIN}(?:{'|'.join(_WEAK)})")),
]
_STRICT_HINT = re.compile(
    r"(?i)fixed|patch|done|correct|implemented|resolv|chang|appl|commit|push|check|merg|land|revert|back|remov|"
    r"drop|reject|declin|accept|clos|mark|todo|approv|pass|carr|fail|consensus|agreed|voted|decided|"
    r"decision|ratified|adopt|todo|geno|gemacht|beschl|entsch|décid|conven|annul|decid|acord|"
    r"откат|реш[еи]|リバート|差し戻|回退|回滚|撤销|还原|决定|決"
)


def is_plain(text: str) -> bool:
    """Return whether a sentence may be a statement: no question, joke or invisible character."""
    if len(text) > _LONGEST or text.rstrip("\"'”’)* \n").endswith(("?", "？")):
        return False
    if _WINK.search(text):
        return False
    return text.isascii() or not any(
        unicodedata.category(x) == "Cf" and x not in _FORMATS for x in text
    )


def is_open(text: str) -> bool:
    """Return whether a sentence is uncertain: a plan, a guess or a condition."""
    return _OPEN.search(text) is not None


def read_act(text: str) -> Act | None:
    """Return the act that a sentence states, except verdicts on patches; None if there is none."""
    if not _STRICT_HINT.search(text):
        return None
    plain = _REASON.sub("", hide_quotations(" ".join(text.split())))
    if _ABROAD.fullmatch(plain):
        return Act("reverted")
    for act, form in _FORMS_OF_ACTS:
        if stated := form.match(plain):
            rest = plain[stated.end() :]
            is_open = _OPEN.search(plain) or TO_TRY.search(rest) or TRIAL.search(rest)
            if act.outcome == "applied" and is_of_something_else(rest):
                return None
            return None if is_open or OF_SOMEBODY.match(rest) else act
    return None


# Programs ---------------------------------------------------------------------------------------

_NOTICE = re.compile(
    r"(?im)^[ \t]{0,20}(?:"
    r"(?P<closed>Resolution[ \t]{0,20}\|[^|\n]{0,60}\|[ \t]{0,8}[A-Z]\w{2,30}|"
    r"\*?[ \t]{0,8}resolution:[^\n]{0,40}(?:=>|→)[ \t]{0,8}\w[\w ]{1,30}|"
    r"Closed #\d{1,9}(?: as \w{1,20}(?: \w{1,20})?)?(?: via #?\w{1,40})?\.?[ \t]{0,4}$)|"
    r"(?P<applied>Merged #\d{1,9}(?: into \S{1,80})?\.?[ \t]{0,4}$)|"
    r"(?P<reopened>Status[ \t]{0,20}\|[^|\n]{0,60}\|[ \t]{0,8}REOPENED|Reopened #\d{1,9}\.?|"
    r"\*?[ \t]{0,8}status:[ \t]{0,8}closed[ \t]{0,8}(?:=>|→)[ \t]{0,8}(?:reopened|new)))"
)


def find_notices(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, outcome) of lines of trackers: a report was closed, merged or reopened.

    The formats are the change tables of Bugzilla and Trac, and GitHub's lines.
    """
    for match in _NOTICE.finditer(text, start, end):
        first, last = match.span(match.lastgroup or 0)
        yield first, last, match.lastgroup or ""
