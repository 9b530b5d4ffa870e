"""Read the verdict of a sentence on a patch: applied, rejected, withdrawn, superseded, resend.

Maintainers and authors answer with such sentences: "Thanks, pushed to master", "Applied 1-3 and 5",
"NAK", "Please ignore, v3 follows". A sentence that is conditional, negated, a question, a plan, or
about trying a patch has no verdict.
"""

import re
from collections.abc import Iterator

from mail_assets.mail.patches.applied import CONDITION, START, WHOLE, Verdict, read_applied

#: A mail without any of these words has no verdict.
HINT = re.compile(
    r"appl(?:y|ied)|queued|merge|pushed|commit|picked|pull|landed|installed|checked |now in|"
    r"na(?:c?k)|reject|feedback|ignore|disregard|discard|cancel|forget|scrap|drop|withdr|retract|abandon|"
    r"tak(?:e|ing|en)\b|added|folded|\br\d{3}|super[sc]ed|obsolet|replaced by|instead|"
    r"re-?se[nt]|re-?post|re-?spin|re-?submit|rebase|"
    r"send |"
    r"angewendet|eingespielt|übernommen|gemerg|gepusht|eingecheckt|abgelehnt|"
    r"appliqu|commit|pouss|intégr|fusionn|rejet|aplic|fusiona|integrad|mesclad|rechaz|rejeit|"
    r"примен|закоммич?|запуш|влил|смерж|отклон|適用|コミット|マージ|プッシュ|却下|"
    r"应用|合并|合入|合併|推送|套用|拒绝",
    re.I,
)
#: "I've applied most of these": it is unknown which were applied.
SOME = re.compile(
    r"\b(?:applied|queued|merged|pushed|committed|picked|pulled)(?: up)? "
    r"(?:a (?:bunch|few|couple)|some|most|several|parts?|half|many) of\b",
    re.I,
)

_LONGEST = 600  # characters of a sentence
_NEAR = 200  # characters before and after it that may mention a newer posting
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,200}[\"”“»]")

# Rejected ---------------------------------------------------------------------------------------

_NAK_LINE = re.compile(r"[^\S\n]{0,3}NA(?:C?K)(?:ed)?-by:[^\S\n]*\S[^\n]{0,200}", re.I)
_NAK = re.compile(
    rf"{START}(?:(?:(?:so|sorry|it['’]s|this is|that['’]s|big|hard|strong|firm|still|"
    r"a|an|another|my|clear|definite|please consider this an?)\W{1,3}){0,4}"
    r"na(?:c?k)(?:ed)?\b(?=\s*(?:$|[.,!:;()\-–—]|(?:from|on|to|for|because|as|"
    r"this|these|until|without|again|then|here|since|of|due)\b))|"
    r"i(?:(?:['’]m| am)(?: going to)? not|['’]ll not| will not| wo n['’]t| won['’]t|"
    r" do(?: not|n['’]t)| (?:refuse|decline) to|(?:['’]ve| have)? decided not to)"
    r"(?: going to| be)? "
    r"(?:apply|merg|commit|accept|tak)(?:e|ing)? "
    r"(?:this|it|that|these|them|(?:this|the|your|these) (?:patch(?:es)?|series|change|one))"
    r"(?=\s*(?:[.!;:(]|\Z|,? (?:because|since|for the)\b))|"
    r"(?:(?:patch|series) (?-i:rejected)|(?-i:Rejected|REJECTED))\b(?=\s*(?:[.,!:;]|$))|"
    r"i(?:['’]m| am)? ?(?:hereby )?(?:nak|nack|reject(?:ing)?|naking|nacking) "
    r"(?:this|it|the|these)\b|"
    r"(?:i(?:['’]ve| have|['’]m| am)? )?(?:(?:mark|clos)(?:ed|ing) "
    r"(?:this |it |(?:this|the) (?:patch|entry|series) )?(?:as )?|"
    r"this is now marked (?:as )?)[\"']?(?:rejected|returned with feedback)\b)"
    r"(?!\s*(?:if|unless|until|because i|\?))",
    re.I,
)
_PART_OF_NAK = (
    r"\bna(?:c?k)(?:ed)? (?:for|on|to|from me (?:for|on|to)) (?:[\w/.:*()-]{1,40} ){1,5}"
    r"(?:parts?|bits?|hunks?|pieces?|portions?|chunks?|half|code|changes?|files?|sections?|lines?|"
    r"subsystems?|drivers?)\b"
)
_NO_NAK = re.compile(
    # of a part: "NAK for the foo hunk", "NAK on any code that I maintain"
    rf"{_PART_OF_NAK}|\b(?:not|no|isn['’]?t|never|withdraw\w*|remove\w*) (?:a |my |the )?na(?:c?k)",
    re.I,
)

# In other languages -----------------------------------------------------------------------------

#: The whole of a short sentence, as maintainers write it; a longer one may mean something else.
_THANKS = (
    r"(?:(?:vielen )?dank(?:e)?|merci(?: beaucoup)?|(?:muchas )?gracias|(?:muito )?obrigad[oa]|"
    r"спасибо|thanks|谢谢|謝謝)"
)
_ABROAD = (
    (
        "applied",
        r"(?:(?:die |der |den |beide )?(?:patch(?:es)?|änderung(?:en)?|serie) )?"
        r"(?:ist |sind |wurden? |habe ich |hab ich )?(?:jetzt |nun )?(?:angewendet|eingespielt|"
        r"übernommen|gemerg[et]d?t?|gepusht|committet|eingecheckt)|"
        r"(?:ich habe|hab) (?:den|die|deinen|ihren) patch(?:es)? (?:jetzt |nun )?(?:angewendet|"
        r"eingespielt|übernommen|gemergt|gepusht|committet|eingecheckt)|"
        r"(?:(?:patch|correctif|série) )?(?:appliqu|commit|pouss|intégr|fusionn)ée?s?|"
        r"j['’]ai (?:appliqué|commité|poussé|intégré|fusionné) (?:le|votre|ton|la|les) "
        r"(?:patchs?|correctifs?|série)|"
        r"(?:(?:parche|patch) )?(?:aplicad|fusionad|integrad|mesclad)[oa]s?|"
        r"(?:he aplicado|apliquei) (?:el|tu|su|o seu|o) (?:parche|patch)|"
        r"(?:патч )?(?:применил[аи]?|применен[оы]?|применён|закоммитил[аи]?|закоммичено|"
        r"запушил[аи]?|влил[аи]?|смержил[аи]?)|"
        r"(?:この)?(?:パッチを)?(?:適用|コミット|マージ|プッシュ)(?:し|いたし|致し)ました|"
        r"(?:该|此)?(?:补丁)?已经?(?:应用|合并|合入|合併|推送|套用)了?(?:该|此)?(?:补丁)?",
    ),
    (
        "rejected",
        r"(?:patch )?(?:abgelehnt|rejetée?|rejeitad[oa])|(?:parche )?rechazad[oa]|"
        r"(?:патч )?отклон(?:ено|ён|ен|яю)|却下(?:し|いたし)(?:ます|ました)|"
        r"已?拒绝(?:该|此)?(?:补丁)?",
    ),
)
_SHORT = 80  # characters
_ABROAD_FORMS = tuple(
    (
        outcome,
        re.compile(
            rf"(?:{_THANKS}[ ,.!，。！–—-]{{1,3}})?(?:{form})(?:[ ,;.!，。！–—-]{{0,3}}{_THANKS})?"
            r"[ .!。！]{0,4}",
            re.I,
        ),
    )
    for outcome, form in _ABROAD
)

# Withdrawn and superseded -----------------------------------------------------------------------

_STOP = r"(?=\s*(?:$|\.(?!\w)|[,!;:()\-–—]|as\b|because\b|since\b|and\b|then\b|due\b|in favou?r\b"
_POSTED = (
    r"(?:(?:this|these|those|the|my|that|both|all|v\d{1,3})(?: of)?(?: the| these)?"
    r"(?: (?:above|previous|last|latest|whole|entire|first|earlier|broken|other|two|three))*"
    r"(?: (?:patch(?:es|[ -]?set)?|series|set|version|e-?mails?|mails?|one|posting|submission|"
    r"thread|v\d{1,3}|pull request|ones))|this|these|it|them|that|v\d{1,3}|patch|series)"
    r"(?: (?:patch|series|version|one))?(?: \d{1,4}/\d{1,4})?"
    rf"(?: please| then| for now| entirely| completely)?{_STOP}|i['’ ]|it\b|sorry\b))"
)
_PATCH = rf"(?:whole |entire )?(?:patch(?:es|[ -]?set)?|series|set|version){_STOP}))"
_TAKE_BACK = re.compile(
    rf"{START}(?:(?:so|sorry|oops|actually|argh|self-nak|@?all|hmm?|my bad|my mistake|yes|"
    r"wait)\b[,.:! ]*)*(?:[^\W\d_]\w{1,30},\s(?=please |pls |plz |kindly |ignore |disregard ))?"
    r"(?:(?:please |pls |plz |kindly |you can |feel free to |just |everyone |folks )*"
    r"(?:(?:ignore|disregard|discard|cancel|forget(?: about)?|scrap|"
    rf"do(?: not|n['’]t) (?:apply|merge|review|pull)) {_POSTED}|ignore,? please\b)|"
    r"(?:please |pls |plz |kindly )(?:(?:just )?ignore|disregard)(?=\s*(?:$|[.,!:;(–—-]))|"
    rf"(?:please |pls |plz |kindly )drop {_POSTED}|"
    rf"(?:let['’]s |let us |please |i['’]d say )?drop (?:this|the|these|my) {_PATCH}|"
    r"i(?:['’]m| am|['’]ve| have|['’]d like to| want to| will|['’]ll)? ?(?:hereby |now )?"
    r"(?:withdraw(?:ing|n)?|retract(?:ing|ed)?|abandon(?:ing|ed)?|"
    r"drop(?:ping|ped)?(?= (?:this|the|my|these) (?:patch|series|set|version)))"
    rf" {_POSTED}|"
    r"(?:please )?consider (?:this|it|these|them|my|the)"
    r"(?: (?:patch(?:es)?|series|set|version|one))? (?:as )?"
    r"(?:withdrawn|dropped|retracted|cancell?ed)\b|"
    r"(?:patch |series |this (?:patch |series |one )?(?:is )?)?"
    r"(?:withdrawn|retracted|self-na(?:c?k))\b(?=\s*(?:$|[.,!:;]))|"
    r"(?:i(?:['’]ve| have|['’]m)? )?mark(?:ed|ing) (?:this |it |the (?:patch|entry) )?(?:as )?"
    r"[\"']?withdrawn\b)",
    re.I,
)
#: "This patch has a fault, please ignore.", "I have sent a new version, ignore this."
_THEN_IGNORE = re.compile(
    r"(?=[^?]{0,200}\b(?:(?:this|the|my|these) (?:patch(?:es)?|series|set|version) "
    r"(?:itself |still )?(?:ha[sd]|have|is|are|was|were|do|does|did|can|contains?|breaks?|fails?|"
    r"needs?|will|wo|miss(?:es|ed)|causes?|introduces?)\b|re-?sent|re-?posted|"
    r"sent (?:out )?(?:an? )?(?:new|v\d|updated|another|revised)))"
    r"[^?]{5,200}?[,;.–—-]\s(?:so |then |and )?(?:please |pls |plz |kindly |just ){0,2}"
    r"(?:ignore|disregard|discard|drop)(?: (?:it|this|these|them)(?: (?:one|patch(?:es)?|series|"
    r"version|mail|email))?)?\s?[.!]*\Z",
    re.I,
)
#: "Ann has a fix, so ignore these": "this" alone may be a word of the mail that it answers.
_SO_IGNORE = re.compile(
    r"[,;–—-]\s(?:so|then|therefore) (?:please |pls |plz |kindly |just |you can )*"
    r"(?:ignore|disregard|discard|drop) (?:(?:this|the|my|these) (?:whole |entire )?"
    r"(?:patch(?:es|[ -]?set)?|series)|this (?:set|version)|"
    r"(?P<these>these|them|(?:the|my|these) (?:set|version)))(?=\s*(?:\Z|[.,!;:(]))",
    re.I,
)
#: Without such a word "these" are not patches: "The pages are stale, so drop them".
_OF_PATCHES = re.compile(r"\b(?:fix\w*|patch\w*|series|solution\w*|solved?)\b", re.I)
_NEWER = re.compile(
    r"\b(?:super(?:s|c)ed(?:ed|es|ing)|obsolet(?:ed|es)|replaced) by\b|"
    r"\b(?:v\d{1,3}|version \d{1,3}|new(?:er)? version|updated (?:version|patch|series)|re-?send|"
    r"resent|respin|re-?post(?:ed)?|next version)\b",
    re.I,
)
_SUPERSEDED = re.compile(
    rf"{START}(?:(?:this|these|it|the|patch|patches|series|v\d{{1,3}}|version)\s*){{0,3}}"
    r"(?:(?:is|are|was|were|has been|have been|['’]s)\s+)?(?:now\s+)?"
    r"(?:super(?:s|c)eded|obsoleted|replaced) by\b(?=[^.\n]{0,60}(?:\bv\d|\bversion\b|https?:|<|"
    r"\bseries\b|\bposting\b|\bpatch\b|\bthis\b|\bthe one\b|\[))|"
    r"(?:please )?(?:use|take|look at|see|consider|review) (?:the )?v\d{1,3} instead\b",
    re.I,
)

# Resend -----------------------------------------------------------------------------------------

_RESEND = re.compile(
    r"(?:\b(?:please|pls|kindly)\b[^.!?;\n]{0,60}|\b(?:(?:can|could|would|will|do) you|mind)\b"
    r"(?! prefer| like me| want me| need)[^.!?;\n]{0,60})"
    r"\b(?:re-?send(?:ing)?|re-?post(?:ing)?|re-?spin(?:ning)?|re-?submit(?:ting)?|"
    r"send (?:a|an|out a|me a) (?:v\d{1,3}|new version|updated version|respin|rebased version))\b|"
    r"^(?:this |the (?:patch|series) )?(?:needs|requires) (?:a |to be )"
    r"(?:rebase|resend|respin|re-?sent|repost)",
    re.I,
)
_NO_RESEND = re.compile(
    r"\b(?:if|unless|no need|needn|don['’]?t|do not|not|never|let me know|should i|shall i|"
    r"i (?:can|will|could|would)|i['’]ll|want me|when you (?:re)?send|necessary|in case|whether|"
    r"once|until|will re|would re)\b",
    re.I,
)
#: "Please ignore my email, I just replied to you": that mail is an answer.
_ANSWERED = re.compile(r"\b(?:replied|answered|(?:reply|answer) to (?:you|all|him|her))\b", re.I)
_IF_NEEDED = re.compile(r"\b(?:if|necessary|in case)\b", re.I)


def find_nak_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines such as "Nacked-by: NAME"."""
    for match in re.finditer(rf"^{_NAK_LINE.pattern}", text, re.I | re.M):
        yield match.span()


def read_sentence(sentence: str, before: str, after: str, below: str) -> Iterator[Verdict]:
    """Yield the verdicts of a sentence.

    `before` and `after` are the sentences next to it, `below` is the text after it: a line that is
    only a commit's URL belongs to it.
    """
    if len(sentence) > _LONGEST:
        return
    plain = hide_quotations(" ".join(sentence.split()))
    if len(plain) <= _SHORT:
        for outcome, form in _ABROAD_FORMS:
            if form.fullmatch(plain):
                yield Verdict(outcome, firm=False)
    if applied := read_applied(plain, below):
        yield applied
    if plain.endswith("?"):
        if _asks_to_resend(plain):
            yield Verdict("resend-requested")
        return
    if _NAK.match(plain) and not _NO_NAK.search(plain):
        yield Verdict("rejected")
    back = _TAKE_BACK.match(plain) or _find_ignore(plain) or _THEN_IGNORE.match(plain)
    if _SUPERSEDED.match(plain):
        yield Verdict("superseded", whole=bool(WHOLE.search(plain)))
    elif back and not (CONDITION.search(plain) or _ANSWERED.search(plain)):
        near = f"{before[-_NEAR:]} {plain} {after[:_NEAR]}"
        outcome = "superseded" if _NEWER.search(near) else "withdrawn"
        yield Verdict(outcome, whole=bool(WHOLE.search(back[0])))
    if _asks_to_resend(plain):
        yield Verdict("resend-requested")


def _find_ignore(plain: str) -> re.Match[str] | None:
    found = _SO_IGNORE.search(plain)
    if found and found["these"] and not _OF_PATCHES.search(plain, 0, found.start()):
        return None
    return found


def hide_quotations(sentence: str) -> str:
    """Return a sentence with blanks in place of text in quotation marks."""
    return _QUOTED.sub(lambda found: f"“{' ' * (len(found[0]) - 2)}”", sentence)


def _asks_to_resend(sentence: str) -> bool:
    asked = _RESEND.search(sentence)
    return asked is not None and not (
        _NO_RESEND.search(sentence[: asked.end()]) or _IF_NEEDED.search(sentence[asked.end() :])
    )
