"""Read what a mail says became of a patch, and find the patches that it speaks about.

Two kinds of mail say so: those of programs (b4, patchwork's bot, pr-tracker, tip-bot, mm-commits),
which name commits, and short answers of people ("Applied, thanks", "Pushed 0001 and 0002", "NAK").
Only new text counts. A sentence that is conditional, negated, a question, a plan or a quotation
says nothing: no outcome rather than a guess.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.patches.subjects import fold_title
from mail_assets.text.sentences import find_sentences

#: Raise it when the same mail would say something else.
OUTCOMES_VERSION = "1"

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
#: Patches that one mail may name.
_MOST_ENTRIES = 500
#: Numbers of "Applied 1-9999": no series has more parts.
_MOST_PARTS = 1_000


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
    firm: bool = True  # False for words that an author uses of a reviewer's suggestion: "merged"


class PostedPatch(NamedTuple):
    """A patch or cover letter of one posting, as far as statements about it need."""

    message_id: str
    place: int
    is_cover: bool
    part: int | None
    title: str


_SHA = r"[0-9a-f]{7,40}"
# in a URL: /c/SHA, /commit/SHA, ?id=SHA, ;h=SHA
_SHA_URL = re.compile(rf"https?://\S{{1,300}}?(?:/c(?:ommits?)?/|[?&;](?:id|h)=)({_SHA})\b")
_SHA_WORD = re.compile(rf"(?<![\w./-])({_SHA})(?![\w/-])")
_HAS_DIGIT = re.compile(r"\d")
# "[v2,3/9] title", "- [net,4/9] title"; a program wraps no title, a mail server may
_ENTRY = re.compile(
    r"[ \t]{0,8}(?:[-*] )?\[(?P<label>[^\[\]\n]{0,40}?)(?P<part>\d{1,4})/\d{1,4}\][ \t]+"
    r"(?P<title>\S[^\n]{0,400})$",
    re.M,
)
_ENTRY_LABEL = re.compile(r"(?:[\w./-]{1,30}[, ]\s{0,3}){0,4}$")
_SINGLE_ENTRY = re.compile(r"[ \t]{0,8}[-*] (?:\[[^\[\]\n]{0,40}\] )?(?P<title>\S[^\n]{0,400})$", re.M)
_NO_COMMIT = re.compile(r"\((?:no|did not find)[^)\n]{0,40}\)", re.I)
_BELOW = 3  # lines below a title that may name its commit

# words that make a statement no statement
_UNSURE = re.compile(
    r"\b(?:if|unless|until|once|when|whenever|before|after|will|would|wo|shall|should|could|can|"
    r"may|might|must|let|please|pls|going to|about to|to be|gonna|plan\w*|want\w*|hop(?:e|ing)|"
    r"try|tried|trying|assum\w+|expect\w*|wait\w*|intend\w*|happy to|ready to|not|never|nor|"
    r"neither|cannot|no objections?|yet|for now|temporar\w+|tentativ\w+|provisional\w*|"
    r"except|apart from|but not|minus|without|partial\w*|some of|most of|a bunch of|"
    r"local(?:ly)?|on top of|cleanly|against|tests?|testing|tested|fail\w*|conflict\w*|"
    r"doesn|don|didn|isn|wasn|hasn|haven|won|why|what|which|who|whether|how)\b|\?|n['’]t\b"
    r"|['’](?:ll|d)\b",
    re.I,
)
#: "I have applied this in my environment": to try it
_TO_TRY = re.compile(
    r"\b(?:env(?:ironment)?|machines?|systems?|setup|lab|box|vm|guest|laptop|servers?|devices?|cluster|"
    r"workstation|into (?:one|a single|the (?:first|previous|next|other))|downstream|ran|run|running|see|saw|get|got|works?|working|boot\w*|built|build\w*|"
    r"but (?:then |it |i )?(?:revert|drop|fail|had to)\w*|revert\w*|dropped|did ?n[o'’]t|did not)\b",
    re.I,
)
#: "I've applied most of these": a "yes" to one is no "yes" to all
_SOME = re.compile(
    rf"\b{'(?:applied|queued|merged|pushed|committed|picked|pulled)'}(?: up)? (?:a (?:bunch|few|couple)|"
    r"some|most|several|parts?|half|many) of\b",
    re.I,
)
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,200}[\"”“»]")

_OBJECT = (
    r"(?:it|this(?: (?:one|patch|series|set|patch(?: )?set|change|fix|version|update))?|"
    r"that(?: one)?|these(?: (?:patches|two|three|changes))?|those|them|both(?: patches| of (?:these|"
    r"them))?|all(?: (?:of )?(?:these|them|patches|(?:\d+|two|three|four|five) (?:patches|of them)|"
    r"\d+|the patches))?|everything|"
    r"(?:the|your|my|his|her) (?:whole |entire |full |v\d+ |attached |latest |last |rest(?: of)?"
    r"(?: the)? ?|first |second |third |remaining |above |updated |revised |two |three |"
    r"four |five |six )*"
    r"(?:patch(?:es|[ -]?set)?|series|set|change|fix|version|one|two|three|lot)?)"
)
_PARTS = (
    r"(?:(?:patch(?:es)?|parts?|numbers?|nos?\.?|commits?|#) ?)?#?(?:v\d{1,3}-)?\d{1,4}(?:/\d{1,4})?"
    r"(?: ?(?:,|-|–|&|and|to|through|\.\.+|, and) ?(?:patch(?:es)? )?#?(?:v\d{1,3}-)?\d{1,4}"
    r"(?:/\d{1,4})?){0,30}(?! ?(?:weeks?|days?|hours?|years?|months?|minutes?|of)\b)"
)
_VERB = (
    r"(?P<verb>(?:re-?)?(?:applied|queued(?: up)?|merged|pushed(?: out)?|"
    r"committed(?! to \w+ing\b)|picked(?: up)?(?! from\b)|pulled(?: in)?|landed|installed|"
    r"checked in))"
)
_FIRM = re.compile(r"applied|pushed|committed|landed|installed|checked", re.I)
_COURTESY = (
    r"(?:(?:many |big )?thanks?(?: you)?(?: (?:a lot|again|very much|so much|all|both|everyone|"
    r"(?:to|for) [^.,;:!?\n]{1,60}|\w+(?: and \w+)?(?=[,.!]))){0,2}|thx|ok(?:ay)?|great|nice|cool|good|perfect|done|alright|right|"
    r"yes|yep|sure|lgtm|(?:this |it |all )?looks? (?:good|great|fine|ok|reasonable|sane|correct|right)"
    r"(?: to me)?(?: (?:now|and [\w ]{1,30}))?|hi(?: \w+)?|hello(?: \w+)?|dear \w+|fwiw|fyi|so|and|"
    r"agreed|applying|acked|reviewed)"
)
_TAIL = (
    r"(?=\s*(?:$|[.!,;:)(\[]|\b(?:to|in|into|onto|for|on|as|at|with|and|by|now|thanks?|thx|again|"
    r"already|today|yesterday|earlier|just now|back(?=-?patch)|through|via|too|as well|upstream|manually|"
    r"after|since|up|over|from|here|there|then|this|last|but|modulo|along)\b|[-–—]|https?:))"
)
_PREFIXES = rf"(?:(?:{_COURTESY})\s*[,.!;:–—-]*\s*){{0,4}}"
_ADVERB = r"(?:(?:now|just|already|also|finally|all|both|since|meanwhile|been|gone ahead and)\s+)"
#: "Applied, thanks", "Thanks, pushed to master", "Queued 1-3 for 6.2"
_BARE = re.compile(
    rf"{_PREFIXES}(?:(?:v\d{{1,3}}|patch(?:es)?|(?:whole |entire |full )?series|both(?: patches)?|set|"
    rf"all(?: (?:\d{{1,3}}|two|three|four|five|six))?(?: patches| of (?:them|it|these))?)\s+)?"
    rf"(?:(?:{_PARTS})\s+)?{_ADVERB}{{0,2}}{_VERB}(?:\s+(?P<object>{_OBJECT}|{_PARTS}))?{_TAIL}",
    re.I,
)
#: "I've pushed this", "We have committed the patch", "I pushed the first two"
_SUBJECT = re.compile(
    rf"(?:^|[,;:.–—]\s*|\b(?:so|and|that|thus|therefore)\s+){_PREFIXES}(?:i|we)(?:['’]?ve| have)?\s+"
    rf"{_ADVERB}{{0,2}}(?:went ahead and\s+)?{_VERB}\s+(?P<object>{_OBJECT}|{_PARTS}){_TAIL}",
    re.I,
)
#: "This patch has been applied to", "It's now queued for", "Series is merged into"
_PASSIVE = re.compile(
    rf"{_PREFIXES}(?P<object>{_OBJECT}|series|patch(?:es)?|{_PARTS})\s*(?:['’]s|\bis|\bare|\bwas|\bwere|"
    rf"\bha(?:s|ve)(?: now)? been|\bgot)\s+{_ADVERB}{{0,2}}{_VERB}{_TAIL}",
    re.I,
)
_INTO = re.compile(
    rf"{_PREFIXES}(?:this|it|the (?:patch|series)|series|patch)(?:['’]s| is| are)? "
    r"(?:now )?in (?:mainline|master|main|trunk|head|linux-next|-next|my tree|upstream)\b"
    r"(?=[ .,!]|$)",
    re.I,
)
_WHOLE = re.compile(
    r"\b(?:series|patch ?set|set|all|both|everything|them|these|those|patches|whole|entire)\b", re.I
)
_PARTS_IN = re.compile(
    r"(?:\bv\d{1,3}-)?#?\b(\d{1,4})(?:/\d{1,4})?(?:\s?(?:-|–|to|through|\.\.+)\s?#?(?:v\d{1,3}-)?"
    r"(\d{1,4})(?:/\d{1,4})?)?\b",
    re.I,
)
_ORDINALS = {"first": 1, "second": 2, "third": 3}
_FIRST_FEW = re.compile(r"\bfirst (\d{1,3}|two|three|four|five|six)\b", re.I)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}

_NAK_LINE = re.compile(r"(?:self-)?(?:not-?)?na(?:c?k)(?:ed)?-by:\s*\S[^\n]{0,200}", re.I)
_NAK = re.compile(
    rf"(?:{_PREFIXES})(?:(?:(?:so|sorry|it['’]s|this is|that['’]s|big|hard|strong|firm|still|"
    r"a|an|another|my|clear|definite|please consider this an?)\W{1,3}){0,4}"
    r"(?:NA(?:C?K)(?:ed)?|nack(?:ed)?|Nak(?:ed)?|nak)\b(?=\s*(?:$|[.,!:;()\-–—]|(?:from|on|to|for|because|as|"
    r"this|these|until|without|again|then|here|since|of|due)\b))|"
    r"(?:(?:patch|series) (?-i:rejected)|(?-i:Rejected|REJECTED))\b(?=\s*(?:[.,!:;]|$))|"
    r"i(?:['’]m| am)? ?(?:hereby )?(?:nak|nack|reject(?:ing)?|naking|nacking) (?:this|it|the|these)\b|"
    r"(?:i(?:['’]ve| have|['’]m)? )?(?:mark(?:ed|ing) (?:this |it |the (?:patch|entry) )?(?:as )?|"
    r"this is now marked (?:as )?)[\"']?(?:rejected|returned with feedback)\b)",
    re.I,
)
_NAK_IS_NONE = re.compile(r"\b(?:not|no|isn['’]?t|never|withdraw\w*|remove\w*) (?:a |my |the )?na(?:c?k)", re.I)

_POSTED = (
    r"(?:(?:this|these|those|the|my|that|both|all|v\d{1,3})(?: of)?(?: the| these)?"
    r"(?: (?:above|previous|last|latest|whole|entire|first|earlier|broken|other|two|three))*"
    r"(?: (?:patch(?:es|[ -]?set)?|series|set|version|e-?mails?|mails?|one|posting|submission|thread|"
    r"v\d{1,3}|pull request|ones))|this|these|it|them|that|v\d{1,3}|patch|series)"
    r"(?: (?:patch|series|version|one))?(?: \d{1,4}/\d{1,4})?(?: please| then| for now| entirely| completely)?"
    r"(?=\s*(?:$|\.(?!\w)|[,!;:()\-–—]|as\b|because\b|since\b|and\b|due\b|in favou?r\b|i['’ ]|it\b|sorry\b))"
)
_TAKE_BACK = re.compile(
    rf"{_PREFIXES}(?:(?:so|sorry|oops|actually|argh|self-nak|@?all|hmm?|my bad|my mistake|yes|wait)\b"
    r"[,.:! ]*)*"
    r"(?:(?:please |pls |kindly |you can |feel free to |just |everyone |folks )*"
    rf"(?:(?:ignore|disregard|discard|forget(?: about)?|scrap|do(?: not|n['’]t) (?:apply|merge|review|"
    rf"pull)) {_POSTED}|ignore,? please\b)|"
    r"(?:please |pls |kindly )(?:(?:just )?ignore|disregard)(?=\s*(?:$|[.,!:;(–—-]))|"
    rf"(?:please |pls |kindly )drop {_POSTED}|"
    r"(?:let['’]s |let us |please |i['’]d say )?drop (?:this|the|these|my) (?:whole |entire )?"
    r"(?:patch(?:es|[ -]?set)?|series|set|version)(?=\s*(?:$|\.(?!\w)|[,!;:()–—-]|as\b|because\b|since\b|then\b))|"
    r"i(?:['’]m| am|['’]ve| have|['’]d like to| want to| will|['’]ll)? ?(?:hereby |now )?"
    r"(?:withdraw(?:ing|n)?|retract(?:ing|ed)?|abandon(?:ing|ed)?|drop(?:ping|ped)?(?= (?:this|the|my|"
    r"these) (?:patch|series|set|version)))"
    rf" {_POSTED}|"
    r"(?:patch |series |this (?:patch |series |one )?(?:is )?)?(?:withdrawn|retracted|self-na(?:c?k))\b"
    r"(?=\s*(?:$|[.,!:;]))|"
    r"(?:i(?:['’]ve| have|['’]m)? )?mark(?:ed|ing) (?:this |it |the (?:patch|entry) )?(?:as )?"
    r"[\"']?withdrawn\b)",
    re.I,
)
_NEWER = re.compile(
    r"\b(?:super(?:s|c)ed(?:ed|es|ing)|obsolet(?:ed|es)|replaced) by\b|"
    r"\b(?:v\d{1,3}|version \d{1,3}|new(?:er)? version|updated (?:version|patch|series)|re-?send|"
    r"resent|respin|re-?post(?:ed)?|next version)\b",
    re.I,
)
_SUPERSEDED = re.compile(
    rf"{_PREFIXES}(?:(?:this|these|it|the|patch|patches|series|v\d{{1,3}}|version)\s*){{0,3}}"
    r"(?:(?:is|are|was|were|has been|have been|['’]s)\s+)?(?:now\s+)?"
    r"(?:super(?:s|c)eded|obsoleted|replaced) by\b(?=[^.\n]{0,60}(?:\bv\d|\bversion\b|https?:|<|"
    r"\bseries\b|\bposting\b|\bpatch\b|\bthis\b|\bthe one\b|\[))|"
    r"(?:please )?(?:use|take|look at|see|consider|review) (?:the )?v\d{1,3} instead\b",
    re.I,
)
_RESEND = re.compile(
    r"(?:\b(?:please|pls|kindly)\b[^.!?;\n]{0,60}|\b(?:(?:can|could|would|will|do) you|mind)\b"
    r"(?! prefer| like me| want me)[^.!?;\n]{0,60})\b(?:re-?send(?:ing)?|re-?post(?:ing)?|re-?spin(?:ning)?|re-?submit(?:ting)?|"
    r"send (?:a|an|out a|me a) (?:v\d{1,3}|new version|updated version|respin|rebased version))\b|"
    r"^(?:this |the (?:patch|series) )?(?:needs|requires) (?:a |to be )(?:rebase|resend|respin|re-?sent|"
    r"repost)",
    re.I,
)
_RESEND_UNSURE = re.compile(
    r"\b(?:if|unless|no need|needn|don['’]?t|do not|not|let me know|should i|shall i|i (?:can|will|"
    r"could|would)|i['’]ll|want me|when you (?:re)?send|necessary|in case|whether|once|until|"
    r"will re|would re)\b",
    re.I,
)


def read_outcomes(body: str, segments: Sequence[Segment]) -> list[OutcomeStatement]:
    """Return what a mail says became of patches, in its order."""
    spans = [(s.start, s.end) for s in segments if s.kind in {"text", "signature"}]
    text = _blank_others(body, spans)
    if found := _read_programs(text):
        return found
    statements = []
    left = _READ
    for start, end in spans:
        if left <= 0:
            break
        statements += _read_prose(body, start, min(end, start + left))
        left -= end - start
    if not statements:
        return []
    if _SOME.search(text[:_READ]):
        statements = [x for x in statements if x.outcome != "applied" or x.parts]
    applied = [x for x in statements if x.outcome == "applied"]
    if applied and not any(x.parts or x.whole for x in applied):
        head = applied[0]
        entries = [*_read_entries(text, head.end)]
        if entries:  # the template of b4, by its program or by hand
            return [x._replace(outcome="applied") for x in entries]
    return _merge(statements)


def _blank_others(body: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the body with all but some spans as blanks, so that offsets stay."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [re.sub(r"[^\n]", " ", body[at:start]), body[start:end]]
        at = end
    return "".join(pieces)


def _merge(statements: Sequence[OutcomeStatement]) -> list[OutcomeStatement]:
    """Return statements once each; a withdrawal of which a newer posting is told is superseded."""
    once: dict[tuple[object, ...], OutcomeStatement] = {}
    for x in statements:
        once.setdefault((x.outcome, x.parts, x.whole, x.title), x)
    kinds = {x.outcome for x in once.values()}
    return [
        x
        for x in once.values()
        if not (x.outcome == "withdrawn" and "superseded" in kinds)
        and not (x.outcome == "resend-requested" and kinds & {"applied", "rejected"})
    ]


# Programs ---------------------------------------------------------------------------------------

_PULLED = re.compile(
    rf"has been merged into (?P<tree>\S[^\n]{{0,200}}):\n+\s*(?P<url>https?://\S{{1,300}}/({_SHA}))\b"
)
_COMMIT_ID = re.compile(
    rf"The following commit has been merged into the [^\n]{{1,120}}:\s+Commit-ID:\s+(?P<sha>{_SHA})\b"
)
_BOT_HEAD = re.compile(
    r"^(?:This (?:patch|series|pull request) was|These patches were|This (?:patch|series) has been) "
    r"(?P<verb>applied|merged)[^\n]{0,300}\n?[^\n]{0,200}:\s*$",
    re.M,
)
_BOT_SUMMARY = re.compile(r"Here is the summary with links:\s*\n")
_ADDED = re.compile(
    r"(?:The patch titled|added the patch titled|This is a note to let you know that I(?:'ve| have) "
    r"just added the patch titled)\s*\n+\s*(?:Subject:\s*)?(?P<title>[^\n]{3,400}(?:\n {5,}\S[^\n]{0,200})?)"
    r"\s*\n+\s*(?:has been added to|to my|to the)(?P<tree>[^\n]{0,200})"
)
_REMOVED = re.compile(
    r"The patch titled\s*\n+\s*(?:Subject:\s*)?(?P<title>[^\n]{3,400}(?:\n {5,}\S[^\n]{0,200})?)\s*\n+"
    r"\s*has been removed from[^\n]{0,200}\n(?:[^\n]{0,200}\n){0,3}\s*This patch was dropped because "
    r"(?P<why>[^\n]{1,200})"
)


def _read_programs(text: str) -> list[OutcomeStatement]:
    if match := _PULLED.search(text):
        return [OutcomeStatement("pulled", match.start(), match.end(), (match[3],), whole=True)]
    if match := _COMMIT_ID.search(text):
        return [OutcomeStatement("applied", match.start(), match.end(), (match["sha"],))]
    if match := _REMOVED.search(text):
        why = match["why"].lower()
        if "merged" in why:
            outcome = "applied"
        elif "obsolet" in why or "updated" in why or "supersed" in why:
            return []  # the program does not say by what
        else:
            outcome = "rejected"
        title = _last_title(match["title"])
        return [OutcomeStatement(outcome, match.start(), match.end(), title=title)]
    if match := _ADDED.search(text):
        title = _last_title(match["title"])
        return [OutcomeStatement("applied", match.start(), match.end(), title=title)]
    head = _BOT_HEAD.search(text)
    summary = _BOT_SUMMARY.search(text, head.end()) if head else None
    if not head or not summary:
        return []
    outcome = "pulled" if "pull request" in head[0] else "applied"
    entries = [*_read_entries(text, summary.end())] or [*_read_single(text, summary.end())]
    return [entry._replace(outcome=outcome) for entry in entries if entry.shas]


def _last_title(title: str) -> str:
    return " ".join(title.split())


def _read_single(text: str, start: int) -> Iterator[OutcomeStatement]:
    """Yield the entry of a patch that is no part of a series: "- [net] title", URL."""
    if match := _SINGLE_ENTRY.search(text, start):
        yield _entry(text, match, ())


def _read_entries(text: str, start: int) -> Iterator[OutcomeStatement]:
    """Yield the patches that a thank-you lists: "[2/5] title", and below "commit: SHA" or a URL."""
    for number, match in enumerate(_ENTRY.finditer(text, start)):
        if number >= _MOST_ENTRIES:
            return
        if _ENTRY_LABEL.match(match["label"]):
            yield _entry(text, match, (int(match["part"]),))


def _entry(text: str, match: re.Match[str], parts: tuple[int, ...]) -> OutcomeStatement:
    """Return the statement of an entry; the lines below it may end its title or name its commit."""
    title, end, shas = match["title"].strip(), match.end(), ()
    for line in text[end + 1 : end + 1_000].split("\n")[:_BELOW]:
        if not line.strip() or _ENTRY.match(line):
            break
        end += 1 + len(line)
        sha = _find_shas(line)
        if sha or _NO_COMMIT.search(line):
            shas = sha
            break
        title = f"{title} {line.strip()}"
    return OutcomeStatement("applied", match.start(), end, shas, title, parts)


def _find_shas(text: str) -> tuple[str, ...]:
    found = [match[1] for match in _SHA_URL.finditer(text)]
    plain = re.sub(r"https?://\S+", " ", text)
    found += [m[1] for m in _SHA_WORD.finditer(plain) if _HAS_DIGIT.search(m[1])]
    return tuple(dict.fromkeys(found))


# People -----------------------------------------------------------------------------------------


def _read_prose(body: str, start: int, end: int) -> Iterator[OutcomeStatement]:
    for match in re.finditer(r"^[^\S\n]{0,3}\S*-by:[^\n]{0,200}", body[start:end], re.I | re.M):
        if _NAK_LINE.fullmatch(match[0].strip()) and "not-" not in match[0].lower():
            yield OutcomeStatement("rejected", start + match.start(), start + match.end())
    sentences = [*find_sentences(body, start, end)]
    for place, span in enumerate(sentences):
        sentence = body[span.start : span.end]
        if len(sentence) > 600:
            continue
        plain = _hide_quotations(" ".join(sentence.split()))
        after = " ".join(body[s.start : s.end] for s in sentences[place + 1 : place + 3])
        before = " ".join(body[s.start : s.end] for s in sentences[max(place - 1, 0) : place])
        yield from (
            x._replace(start=span.start, end=span.end)
            for x in _read_sentence(plain, before, after, body[span.end : end])
        )


def _hide_quotations(sentence: str) -> str:
    return _QUOTED.sub(lambda m: "“" + " " * (len(m[0]) - 2) + "”", sentence)


def _read_sentence(
    sentence: str, before: str, after: str, rest: str
) -> Iterator[OutcomeStatement]:
    if statement := _read_applied(sentence, rest):
        yield statement
    if (
        (match := _NAK.match(sentence))
        and not _NAK_IS_NONE.search(sentence)
        and not re.match(r"\s*(?:if|unless|until|because i|\?)", sentence[match.end() :], re.I)
        and not sentence.endswith("?")
    ):
        yield OutcomeStatement("rejected", 0, 0)
    if _SUPERSEDED.match(sentence) and not sentence.endswith("?"):
        yield OutcomeStatement("superseded", 0, 0, whole=bool(_WHOLE.search(sentence)))
    elif (match := _TAKE_BACK.match(sentence)) and not sentence.endswith("?"):
        if not re.search(r"\b(?:if|unless)\b", sentence, re.I):
            near = f"{before[-200:]} {sentence} {after[:200]}"
            outcome = "superseded" if _NEWER.search(near) else "withdrawn"
            yield OutcomeStatement(outcome, 0, 0, whole=bool(_WHOLE.search(match[0])))
    if (match := _RESEND.search(sentence)) and not (
        _RESEND_UNSURE.search(sentence[: match.end()])
        or re.search(r"\b(?:if|necessary|in case)\b", sentence[match.end() :], re.I)
    ):
        yield OutcomeStatement("resend-requested", 0, 0, whole=bool(_WHOLE.search(sentence)))


def _read_applied(sentence: str, rest: str) -> OutcomeStatement | None:
    """Return the statement that patches were applied, None if the sentence does not say so."""
    match = (
        _BARE.match(sentence)
        or _SUBJECT.search(sentence)
        or _PASSIVE.match(sentence)
        or _INTO.match(sentence)
    )
    if not match:
        return None
    said = sentence[match.start() : match.end()]
    # what follows "thanks" is another matter; a reason ("after the fixup") is none of the conditions
    clause = sentence[match.end() :]
    stop = re.search(r"[,;.!:(]|\bthanks?\b| - |\band\b", clause)
    near = clause[: stop.start()] if stop else clause
    if re.search(r"\b(?:attached|rest|remaining)\b", said, re.I):  # of this mail; of unknown parts
        return None
    if _UNSURE.search(said) or _TO_TRY.search(clause) or _UNSURE.search(re.sub(r"\b(?:after|with\w*) [\w' -]+", "", near)):
        return None
    if re.search(r"\?\s*$|\bfor now\b|\bexcept\b|\bbut not\b|\bminus\b", sentence, re.I):
        return None
    if re.search(r"\b(?:if|unless|until|once)\b", clause[:80], re.I):
        return None
    numbers = _find_parts(sentence, match)
    shas = _find_shas(clause) or _find_shas_below(rest)
    whole = not numbers and bool(_WHOLE.search(said))
    verb = match.groupdict().get("verb") or "in"
    firm = bool(_FIRM.search(verb))
    return OutcomeStatement("applied", 0, 0, shas, parts=numbers, whole=whole, firm=firm)


def _find_shas_below(rest: str) -> tuple[str, ...]:
    """Return the commits that stand alone in the line below a sentence."""
    line = rest.lstrip(" \t\r\n")[:400].split("\n")[0].strip()
    if _SHA_URL.fullmatch(line) or re.fullmatch(rf"(?:commit:? |as )?{_SHA}\.?", line, re.I):
        return _find_shas(line)
    return ()


def _find_parts(sentence: str, match: re.Match[str]) -> tuple[int, ...]:
    """Return the parts that "Applied 1-3 and 5", "Pushed 0001" or "the first two" name."""
    said = match[0]
    if few := _FIRST_FEW.search(said):
        word = few[1].lower()
        return tuple(range(1, (_NUMBERS.get(word) or int(word)) + 1))
    for word, number in _ORDINALS.items():
        if re.search(rf"\b{word} (?:patch|one|part)\b", said, re.I):
            return (number,)
    named = re.sub(r"\bv\d+(?!-\d)(?:\.\d+)*\b", " ", said)
    parts: list[int] = []
    for found in _PARTS_IN.finditer(named):
        first, last = int(found[1]), int(found[2] or found[1])
        if first > last or last > _MOST_PARTS:
            return ()
        parts += range(first, last + 1)
    return tuple(dict.fromkeys(parts))


# To the right patch -----------------------------------------------------------------------------


def find_targets(
    statement: OutcomeStatement, posting: Collection[PostedPatch], answered: PostedPatch
) -> list[PostedPatch]:
    """Return the patches of a posting that a statement is about; none where it is unclear.

    `answered` is the patch or cover letter of the posting that the mail answers.
    """
    patches = [x for x in posting if not x.is_cover]
    if statement.title:
        return _find_titled(statement, patches)
    if statement.parts:
        return [x for x in patches if x.part in statement.parts]
    if statement.whole or answered.is_cover:
        return patches or [answered]
    return [answered]


def _find_titled(
    statement: OutcomeStatement, patches: Collection[PostedPatch]
) -> list[PostedPatch]:
    key = fold_title(statement.title)
    same = [x for x in patches if fold_title(x.title) == key]
    if len(same) > 1:
        same = [x for x in same if x.part in statement.parts]
    if same or not statement.parts:
        return same
    words = _words(statement.title)
    near = [
        x
        for x in patches
        if x.part in statement.parts and len(words & _words(x.title)) * 2 > len(words)
    ]
    return near if len(near) == 1 else []


def _words(title: str) -> set[str]:
    return {*re.findall(r"\w+", title.casefold())}
