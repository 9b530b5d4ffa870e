"""Read from a sentence that patches were applied, which of them, and as which commits.

Examples: "Thanks, pushed to master", "Applied 1-3 and 5". A sentence that is conditional, a plan,
or about trying a patch does not say so. Nor does one whose words after the verb show another
subject: "applied for a job", "applied to each byte", "landed in Berlin", "merged by mistake".
"""

import re
from typing import NamedTuple

from mail_assets.mail.patches.commits import SHA, SHA_URL, find_revisions, find_shas


class Verdict(NamedTuple):
    """An outcome of a patch as a sentence states it; see outcomes.OUTCOMES."""

    outcome: str
    parts: tuple[int, ...] = ()
    whole: bool = False  # about all patches of the posting
    shas: tuple[str, ...] = ()
    firm: bool = True  # False for words that authors use for an accepted suggestion: "merged"
    version: int | None = None  # the version that it names


_MOST_PARTS = 1_000  # "Applied 1-9999": no series has more

# Commits ----------------------------------------------------------------------------------------

_SHA_LINE = re.compile(rf"(?:commit:? |as )?{SHA}\.?", re.I)
#: "Committed, this fixes the loss since r1900"
_OTHER_REVISION = re.compile(
    r"\b(?:from|since|by|of|after|before|until|than|like|see|against|fix\w*|broke\w*|"
    r"regress\w*|revert\w*|caused?|introduc\w*|missing|in addition|follow\w*)\b",
    re.I,
)

# Words ------------------------------------------------------------------------------------------

# with these words a sentence has no verdict
_UNSURE = re.compile(
    r"\b(?:if|unless|until|once|when|whenever|before|after|will|would|wo|shall|should|could|can|"
    r"may|might|must|let|please|pls|going to|about to|to be(?! sent (?:up|to))|gonna|plan\w*|"
    r"want\w*|hop(?:e|ing)|try|tried|trying|assum\w+|expect\w*|wait\w*|intend\w*|happy to|"
    r"ready to|not|never|nor|"
    r"neither|cannot|no objections?|yet|for now|temporar\w+|tentativ\w+|provisional\w*|"
    r"except|exception|excluding|apart from|but not|(?:all|everything|both) but|minus|without|"
    r"partial\w*|some of|most of|"
    r"a bunch of|as part of|for a while|ages ago|(?:in|back in|since) (?:19|20)\d\d|"
    r"(?<!inclusion )in v?\d{1,2}(?:(?:\.\d+)+|\s*\Z)|"
    r"as an?(?: \w{1,20})? (?:patch ?(?:set|series)|series|version|posting|pull request|branch)|"
    r"for (?:review|reference|comments?|discussion)|on (?:v?\d|linux-next|mainline|tag|commit)|"
    r"local(?:ly)?|on top of|cleanly|against|tests?|testing|tested|fail\w*|conflict\w*|"
    r"doesn|don|didn|isn|wasn|hasn|haven|won|why|what|which|who|whether|how)\b|\?|n['’]t\b"
    r"|['’](?:ll|d)\b",
    re.I,
)
#: "I have applied this in my environment": only to try it.
TO_TRY = re.compile(
    r"\b(?:env(?:ironment)?|machines?|systems?|setup|lab|box|vm|guest|laptop|servers?|devices?|"
    r"cluster|workstation|into (?:one|a single|the (?:first|previous|next|other|original))|"
    r"downstream|re-?built|re-?compiled|re-?ran|reproduce\w*|here(?: is|['’]s| are)|"
    r"and (?:it|this|that) (?:now )?(?:address|fix|solve|resolve|help)\w*|"
    r"ran|run|running|"
    r"see(?! (?:my|note|below|above|also|inline|the (?:comments?|commit)|some|a few)\b)|"
    r"saw|get|got|(?<!good )(?<!nice )(?<!great )(?<!your )works?|working|boot\w*|built|build\w*|"
    r"and (?:it |then )?(?:still )?fail\w*|but (?:then |it |i )?(?:revert|drop|fail|had to)\w*|"
    r"revert\w*|dropped|did ?n[o'’]t|did not|to (?:re-?)?test (?:it|this|them|the|these|your))\b",
    re.I,
)
#: "I have applied your patch and tested on x86": what was pushed is for others.
_TESTED = re.compile(
    r"\band (?:then )?(?:re-?)?tested (?:(?:it|this|them|that) )?(?:on|with|in|under|using)\b", re.I
)
_SHARED = re.compile(r"pushed|committed|queued|landed", re.I)
CONDITION = re.compile(r"\b(?:if|unless|until|once)\b", re.I)
#: "Queued, you'll see it once the window closes", "with plans to move it", "thanks for testing":
#: conditions and words for a trial that are about another matter.
_YOU_SEE = re.compile(
    r"[,;]\s(?:and )?you(?:['’]ll| will| should| can)\b.*|\bwith (?:the )?plans? to\b.*|"
    r"\bthank(?:s| you)(?: (?:a lot|very much|so much|all))? for [^.;!?]*",
    re.I,
)
#: "Pushed into URL", "pushed to my branch": for others to fetch, perhaps for trial.
_TO_FETCH = re.compile(
    r"\bpushed\b.{0,60}?(?:\b(?:in|to|into|at|on):?\s*(?:https?://|\Z)|"
    r"\b(?:my|our|own) (?:[\w-]{1,20} ){0,2}(?:branch|fork|github|gitlab|repo)\b)",
    re.I,
)
#: "Thanks for the mail, which all landed"
_RELATIVE = re.compile(r"\b(?:which|(?<!now )that(?! way\b)|who)\b", re.I)  # "now that"
#: "Fixed and pushed": the author may mean their own branch.
_TAKEN_UP = re.compile(
    r"\b(?:done|made|fixed|changed|adjusted|tweaked|edited|updated|amended|corrected|added)\b", re.I
)
_LIMITED = re.compile(
    r"\?\s*$|\bfor now\b|\bexcept(?:ion)?\b|\bexcluding\b|\bbut not\b|\bminus\b|"
    r"\b(?:all|everything|both) but\b|\bbut (?:one|two|the (?:first|last|second))\b",
    re.I,
)
_OTHER_PATCH = re.compile(r"\b(?:attached|rest|remaining)\b", re.I)  # of this mail; unknown parts
#: "I've applied the patches from Ann": to try them
OF_SOMEBODY = re.compile(r"\s+from (?!(?i:github|gitlab|patchwork|bugzilla)\b)[A-Z][a-z]")
_CLAUSE_END = re.compile(r"[,;!:(]|\.(?!\d)|\bthanks?\b| --? |\band\b", re.I)
_EDITED = re.compile(r"\b(?:after|with\w*) [\w' -]+", re.I)  # "after a fixup": no condition
WHOLE = re.compile(
    r"\b(?:series|patch ?set|set|all|both|everything|them|these|those|patches|whole|entire)\b", re.I
)
# "Thanks for ..." ends at a sign or at a word that continues. It is tried once, not at each length.
_THANKED_FOR = (
    r"(?:to|for) [^.,;:!?\n]{1,60}?(?=\s*+(?:[.,;:!?\n–—]|$|\b(?:(?:i|we)\b|(?:now|just|already|"
    r"also|this|it|patch|series|re-?applied|applied|queued|merged|pushed|committed|picked|pulled|"
    r"landed|installed|checked|super[sc]eded|nac?k|rejected|ignore|disregard|drop)\b)))"
)
# "Much better", "Thanks Ann, this series looks good to me"
_PRAISE = (
    r"(?:(?:this|it|that|all|both|these|the|patch|series|revision|version|fix|v\d{1,3}|looks?|"
    r"seems?|sounds?|is|are|it['’]s|makes?|much|very|pretty|quite|obviously|so) ){0,6}"
    r"(?:good|great|fine|ok|reasonable|sane|correct|right|better|nice|sense)(?: to me| enough)?"
)
_COURTESY = (
    r"(?:(?:many |big )?thanks?(?: you)?(?: (?:a lot|again|very much|so much|all|both|everyone|"
    rf"{_THANKED_FOR}|\w{{1,40}}+(?: and \w{{1,40}}+)?(?=[,.!]| --?\s))){{0,2}}|thx|"
    r"ok(?:ay)?|great|nice|no need (?:for|to) [^.,;:!?\n]{1,40}+(?=[,;:])|"
    r"cool|good|perfect|(?:done|fixed|changed|modified|adjusted|tweaked|edited|updated)"
    r"(?: (?:it|this|so|accordingly|(?:it |this )?(?:that|this) way|as (?:you )?suggested))? and|"
    r"(?:boot-?strapped|(?:reg(?:ression)?)?[ -]?tested|built|verified|checked(?! in\b)|reviewed)\b"
    r"[^,;.!?\n]{0,80}+(?=[,;])|done|alright|right|yes|yep|sure|lgtm|"
    rf"{_PRAISE}(?: (?:now|and [\w ]{{1,30}}))?|hi(?: \w{{1,40}}+)?|hello(?: \w{{1,40}}+)?|"
    r"dear \w{1,40}+|(?:\w{1,20} ){1,3}(?:fixed|amended|tweaked|corrected|added),? and|"
    r"fwiw|fyi|p\.?s\.?|so|and|now|also|anyway|regardless|agreed|applying|acked|reviewed)"
)
START = rf"(?>(?:\.{{2,9}}|…)\s*)?(?>(?>{_COURTESY}(?!\w)\s*+[,.!;:–—-]*+\s*+){{0,4}})(?P<begin>)"

# Applied ----------------------------------------------------------------------------------------

#: "Added to misc-next": a branch by its name, not "added to the tree" of the code.
_ADDED = (
    r"added(?= (?:(?:it|them|all|both|(?:this|these|the|your)(?: patch(?:es|set)?| series)?) )?"
    r"(?:in)?to (?:the )?(?:[\w.]{1,20}[-/]){0,3}(?:next|devel|master|main|trunk|staging|"
    r"(?<=[-/])(?:fixes|queue|tree|stable))(?:$|[.,;:!)]| ?- | (?:branch|with|and|now|as|for|by|to|"
    r"again|already|too|thanks?|thx)\b))"
)
_VERB = (
    r"(?:(?:re-?)?(?:applied|queued(?: up)?|merged|pushed(?: out)?|"
    r"committed(?! to \w+ing\b)|picked(?! (?:up )?(?:from|by)\b)(?: up)?|pulled(?: in)?|landed|"
    rf"installed|checked in|{_ADDED}))"
)
# authors say "applied" alone about suggestions
_FIRM = re.compile(
    r"(?:patch(?:es|set)?|series)(?: ha(?:s|ve) been| (?!is\b|are\b|was\b|were\b)\w{1,10})? "
    r"(?:applied|merged|queued)|"
    r"applied (?:to|in|on|onto|as|the|your|this)\b|pushed|committed|landed|installed|checked|"
    r"\br\d{3}",
    re.I,
)
#: The tree or branch where it was merged.
_PLACED = re.compile(
    r"\s(?:in)?to (?:the )?(?:[\w.-]{2,30}/[\w./-]{2,40}|(?:main|master|trunk|mainline)\b)", re.I
)
_ADVERB = (
    r"(?:(?:now|just|already|also|finally|all|both|since|meanwhile|indeed|been|gone ahead and|"
    r"went ahead and)\s+)"
)
_COUNT = r"(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
#: "all your 5 patches", "all 5 your man page patches", "all of the patches below"
_ALL_PATCHES = (
    rf"all(?: of)?(?: (?:the|your|my|his|her|these|those))?(?: {_COUNT})?(?: your)?"
    r"(?: [\w-]{1,20}){0,2}? patches(?: (?:above|below|here))?"
)
#: "a slightly different version of your patch"
_EDITED_VERSION = (
    r"an? (?:slightly |(?:little )?bit )?(?:different|modified|edited|changed|simplified) "
    r"version(?: of (?:it|this|(?:this |the |your )?patch))?"
)
_OBJECT = (
    r"(?:r(?:ev(?:ision)? ?r?)?\d{2,7}|it|v\d{1,3}(?!-\d)|"
    rf"{_ALL_PATCHES}|{_EDITED_VERSION}|"
    r"(?:this )?(?:whole|entire|full) (?:patch(?:es|[ -]?set)?|series|set)|"
    rf"this series of {_COUNT} patches|"
    r"this(?: (?:one|patch|series|set|patch(?: )?set|change|fix|version|update))?|"
    rf"that(?: one| patch)?|those|them|these(?: {_COUNT})?(?: (?:patches|changes))?|"
    r"both(?: patches| of (?:these|them|(?:your|the) patches))?|"
    rf"all(?: (?:of )?(?:your patches|v\d{{1,3}}|these|them|patches|the (?:above )?patches|"
    rf"{_COUNT}(?: patches| of them)?))?|everything|"
    r"(?:the|your|my|his|her) (?:whole |entire |full |v\d+ |attached |latest |last |rest(?: of)?"
    r"(?: the)? ?|first |second |third |remaining |above |updated |revised |two |three |"
    r"four |five |six |\d{1,3} |original )*"
    r"(?:patch(?:es|[ -]?set)?|series|set|change|fix|version|v\d{1,3}|one|two|three|lot)?)"
)
_PARTS = (
    r"(?:(?:patch(?:es)?|parts?|numbers?|nos?\.?|commits?|#) ?)?#?(?:v\d{1,3}-)?\d{1,4}"
    r"(?:/\d{1,4})?(?: ?(?:,|-|–|&|and|to|through|\.\.+|, and) ?(?:patch(?:es)? )?#?"
    r"(?:v\d{1,3}-)?\d{1,4}(?:/\d{1,4})?){0,30}"
    r"(?!\.\d| ?(?:weeks?|days?|hours?|years?|months?|minutes?|of)\b)"
)
_END = (
    r"(?=\s*(?:$|[.!,;:)(\[]|\b(?:to|in|into|onto|for|on|as|at|with|and|by|now|thanks?|thx|again|"
    r"already|today|yesterday|earlier|just now|(?:an?|one|two|some|\d{1,2}) (?:few |couple of )?"
    r"(?:hours?|days?|weeks?) ago|last week|"
    r"back(?=-?patch)|through|via|too|both|as well|upstream|"
    r"manually|after|without (?:this|that|the) (?!patch|part|series|last|first|\w*test)\w+|since|"
    r"up|over|from|here|there|then|this|that way|last|but|modulo|along|"
    r"using)\b|[-–—&]|https?:))"
)
_I_EDITED = (
    r"(?:i|we)(?:['’]?ve| have)?\s+(?:also |just )?(?:changed|fixed|corrected|re-?formatted|"
    r"adjusted|re-?worded|re-?worked|rebased|moved|renamed|removed|added|replaced|cleaned|"
    r"simplified|squashed|folded|put|made|re-?wrote|edited|updated|tweaked|amended|modified|"
    r"resolved|shortened|clarified|converted)\b"
)
_BY_HAND = re.compile(_I_EDITED, re.I)
_APPLIED = (
    # "Applied, thanks", "Thanks, pushed to master", "Queued 1-3 for 6.2"
    re.compile(
        rf"{START}(?:(?!(?:first|then|next|later|finally|after)\b)\w{{2,20}}[,.] )?"
        rf"(?:{_ALL_PATCHES}\s+)?(?:(?:v\d{{1,3}}|fix(?:es)?|"
        r"(?:whole |entire |full )?(?:patch(?:es|[ -]?set)?|series)|"
        rf"both(?: patches)?|set|all(?: (?:\d{{1,3}}|two|three|four|five|six))?"
        rf"(?: patches| of (?:them|it|these))?)\s+){{0,2}}(?:(?:{_PARTS})\s+)?"
        rf"{_ADVERB}{{0,2}}{_VERB}"
        rf"(?:\s+(?:{_OBJECT}|patch(?:es|[ -]?set)?|series|(?:both )?{_PARTS}))?{_END}",
        re.I,
    ).match,
    # "I've pushed this", "We have committed the patch", "I pushed the first two"
    re.compile(
        rf"(?:^|[,;:.–—]\s*|\b(?:so|and|but|that|thus|therefore)\s+){START}"
        rf"(?:i|we)(?:['’]?ve| have)?\s+{_ADVERB}{{0,2}}{_VERB}\s+"
        rf"(?:{_OBJECT}|(?:both )?{_PARTS}){_END}",
        re.I,
    ).search,
    # "This patch has been applied to", "It's now queued for", "Series is merged into"
    re.compile(
        rf"{START}(?:{_OBJECT}|series|patch(?:es)?|{_PARTS})"
        r"(?: (?:from|in) (?:this|the) (?:series|set|patch ?set))?"
        r"\s*(?:['’]s|\bis|\bare|\bwas|\bwere|"
        r"\bha(?:s|ve)(?: (?:now|already|just|since|also|all|both|indeed))? been|\bgot)"
        rf"\s+{_ADVERB}{{0,2}}{_VERB}{_END}",
        re.I,
    ).match,
    # "Taken, thanks", "Added to my queue", "Marked as committed", "Thanks, r12345"
    re.compile(
        rf"{START}(?:(?:i(?:['’]ve| have)? )?(?:taken|folded in|"
        r"added to (?:my|the) (?:[\w/.-]{1,30} )?(?:queue|tree|branch|pile)|"
        r"mark(?:ed|ing) (?:(?:this|it|the (?:cf )?(?:patch|entry)) )?(?:as )?committed)"
        r"(?=\s*(?:[.,!;:(]|\Z| in the c(?:f|ommit ?fest)\b))|"
        r"r\d{3,7}(?=\s*[.!]?\Z)|"
        r"i(?:['’]ve| have)? (?:now |just )?checked (?:it|this|them|(?:the|your) patch(?:es)?) "
        r"in(?:to)?(?=\s*(?:[.,!;:(]|\Z| (?:now|too)\b))|"
        r"(?:it|this|that|they|these|(?:the|your) patch(?:es)?)(?:['’]s|['’]re| is| are) now in "
        r"(?:the )?(?:cvs|svn|git|trunk|master|main|head|tree|repo(?:sitory)?)(?=\s*[.!]*\Z)|"
        r"(?:this|it) landed (?:in|on|as) (?:r?\d{4,7}|[0-9a-f]{7,40}|master|main|trunk)\b)",
        re.I,
    ).match,
    # "I've changed how we do the check and pushed, thanks.": a maintainer's edit, then only thanks
    re.compile(
        rf"{_I_EDITED}"
        r"(?![^?]{0,80}\b(?:branch|fork|github|gitlab|if|would|will|not)\b)"
        rf"[^;:!?\n]{{0,300}}?,?\sand\s(?:then\s)?(?P<begin>){_ADVERB}?(?:pushed|committed)"
        r"(?=,?\s*(?:[.!]?\Z|(?:many |big )?(?:thanks|thx|thank you)\b[^,;:?]{0,60}\Z))",
        re.I,
    ).match,
)
#: A named tree, after which more may follow: "once the merge window closes".
_TREE = r"(?:in)?to (?:the )?[\w.-]{2,30}/[\w.-]{2,40}(?![\w/])"
_THESE = (
    r"(?:(?:this|the|your|whole|entire|first|both) ){0,3}(?:patch(?:es|[ -]?set)?|series|commits?)|"
    r"this one|these|v\d{1,3}|both"
)
_BREAK = r"(?:[,;:–—]|-(?=\s)|=>|\.{2,9}|…|\A)\s*"
#: At the end of a sentence, after words about something else.
_LAST = (
    # "With no comments since, I merged it into a/next", "Much better, merged into a/next"
    re.compile(
        rf"(?P<lead>[^\n?]{{0,100}}?)(?:{_BREAK}|\band\s+|\b(?=i\b|it\b|this\b))(?P<begin>)"
        rf"(?:(?:i|we)(?:['’]?ve| have)? |(?:it|this)(?:['’]s| is| patch is| series is) |)"
        rf"(?:{_ADVERB}|also ){{0,2}}(?:merged|applied|committed)(?: (?:{_OBJECT}))? {_TREE}",
        re.I,
    ).match,
    # "Fixed a typo and pushed, thanks.": nothing but thanks follows
    re.compile(
        rf"(?P<lead>[^\n?]{{0,80}}?)(?:{_BREAK}|\b(?:and|so|thus|therefore|hence|however|anyways?|"
        r"also|thanks)\s+)(?P<begin>)(?:(?:so|thus|therefore|then|also|and) ){0,2}"
        rf"(?:(?:i|we)(?:['’]ve| have)? |(?:{_THESE}) |)(?:{_ADVERB}|help ){{0,2}}"
        rf"(?:(?:merged|pushed|committed)(?: (?:it|this|{_THESE}))?|"
        rf"applied|queued(?: up)?|picked up|{_ADDED})"
        r"(?: (?:now|already|too|as well|also|directly|manually)){0,2}"
        r"(?: (?:with|to|into|as) (?!\w{1,20}ing\b)"
        r"(?:(?!\b(?:my|own|original|fork|branch|github|gitlab)\b)[^,;:!?\n]){1,50}?)?"
        r"(?=\s*(?:[.!~:]*\Z|[,;.!–—-]*\s*(?:many |big )?(?:thanks|thx|thank you)\b))",
        re.I,
    ).match,
)
_ACT = re.compile(rf"{_VERB}(?: (?:it|this|{_THESE})\b)?", re.I)
#: Words that show the work of others, other patches, a plan, or a condition.
_UNSURE_LEAD = re.compile(
    r"\b(?:if|unless|until|once|when\w*|after|before|will|would|shall|should|could|can|may|might|"
    r"must|let|please|pls|not|never|nor|neither|no longer|yet|except|without|plan\w*|hop(?:e|ing)|"
    r"want\w*|wait\w*|try|tried|trying|why|what|which|whose|who|whether|how|though|thought|see|saw|"
    r"are|was|were|be|been|being|gets?|got|had(?! to)|they|he|she|you|someone|rest|remaining|"
    r"previous|others?|my|only|locally|branch|fork|first|(?<!-)or(?!-)|patch(?:es)? ?#?\d\S*)\b|"
    r"n['’]t\b|['’](?:ll|d)\b|[\"“]",
    re.I,
)
_PASSIVE = re.compile(r"\b(?:is|has|have been)\b[^,;]*\Z", re.I)  # "a page is split and merged"
_WHITHER = re.compile(r" (?:with|(?:in)?to|as) ", re.I)
_PARTS_IN = re.compile(
    r"(?:\bv\d{1,3}-)?#?\b(\d{1,4})(?:/\d{1,4})?(?:\s?(?:-|–|to|through|\.\.+)\s?#?(?:v\d{1,3}-)?"
    r"(\d{1,4})(?:/\d{1,4})?)?\b",
    re.I,
)
_VERSION = re.compile(r"\bv(\d{1,4})(?!-\d)(?:\.\d+)*\b", re.I)
_ORDINAL = re.compile(r"\b(first|second|third) (?:patch|one|part)\b", re.I)
_ORDINALS = {"first": 1, "second": 2, "third": 3}
_ALL = re.compile(rf"\b(?:all|these|series of)(?: of)?(?: the| your)? {_COUNT}\b", re.I)
_FIRST_FEW = re.compile(r"\bfirst (\d{1,3}|two|three|four|five|six)\b", re.I)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}

# Other matters ------------------------------------------------------------------------------------

#: A place where patches go: it has one of these words, a number, or the name of a branch.
_HOME = re.compile(
    r"\b(?:tree|branch\w*|repo\w*|queues?|patch\w*|series|stack of|master|main|trunk|head|mainline|"
    r"upstream|next|devel\w*|staging|fixes|kernels?|cvs|svn|git\w*|bzr|hg|mercurial|subversion|"
    r"stable|releases?|versions?|site|website|pages?|docs?|manual|documentation|list|sources?|"
    r"packages?|distribution|archives?|tip|pull|window|cycle|core|commit\w*|cf|above|same|usual)\b|"
    r"\d|\w[-/_]\w|https?:|['’]s\b",
    re.I,
)
#: The words after the verb, up to the end of the clause.
_COMPLEMENT = re.compile(
    r"\s+(?:(?:up|back|it|this|them|off|out) )?(?P<prep>in(?:to)?|on(?:to)?|to|at|by|for) "
    r"(?P<what>(?:(?:the|an?|each|every|all|any|both|some|one|my|our|your|his|her|their)\b|"
    r"(?-i:[A-Z])[a-z]+(?=\s*(?:[.!]?\Z| (?:yesterday|today|last|on|in|this)\b))|"
    r"memory|paper|disk|tape|mind|heart|things|later|membership)"
    r"(?:[^,;.:!?()\n]|\.(?=\w)){0,60})",
    re.I,
)
#: After "for" an article means that a person applies; after "by" a program or a mistake does it.
_PERSONAL = re.compile(r"an?\b|some\b|(?:my|his|her|their)\b|membership|later", re.I)
#: It was a mistake or was undone.
_UNDONE = re.compile(
    r"\b(?:by (?:mistake|accident)|in error|accidentally|back(?:ed|ing)? (?:it |this |them )?out|"
    r"(?:in(?:to)?|to|on) (?:the |a )?wrong|into (?:one|a single|patch(?:es)? #?\d+)|"
    r"(?:to|through) (?:the )?mailing list|to the list|"
    r"(?:this|it) (?:still )?(?:fails|breaks|crashes|hangs))\b",
    re.I,
)
#: "Applied to Debian as 2.42-2": in the package of a distribution
_DOWNSTREAM = re.compile(
    r"\s+(?:in(?:to)?|to|for) (?:Debian|Ubuntu|Fedora|RHEL|CentOS|openSUSE|Gentoo|Alpine|NixOS)\b"
)
#: "Picked up a cold"
_PICKED = re.compile(r"\s+up (?P<what>(?:an?|some|my|his|her|our|their)\b[^,;.]{0,40})", re.I)
_PATCHES = re.compile(r"\b(?:patch\w*|series|commit\w*|fix\w*|changes?|versions?|trees?)\b", re.I)


def is_of_something_else(rest: str) -> bool:
    """Return whether the words after a verb show that it is not about a patch, or was undone."""
    picked = _PICKED.match(rest)
    if _DOWNSTREAM.match(rest) or _UNDONE.search(rest):
        return True
    if picked and not _PATCHES.search(picked["what"]):
        return True
    found = _COMPLEMENT.match(rest)
    if not found or _HOME.search(found["what"]):
        return False
    if found["prep"].lower() == "for":
        return _PERSONAL.match(found["what"]) is not None
    return found["prep"].lower() != "by" or found["what"].lower().startswith("the ")


# Reading ------------------------------------------------------------------------------------------


def read_applied(sentence: str, below: str) -> Verdict | None:
    """Return the verdict of a sentence that a patch was applied, with parts and commits.

    `below` is the text after it: a line that is only a commit's URL belongs to it.
    """
    first = next((found for find in _APPLIED if (found := find(sentence))), None)
    return (first and _judge_applied(sentence, below, first)) or _read_last(sentence, below)


def _read_last(sentence: str, below: str) -> Verdict | None:
    """Return the verdict at the end of a sentence, after words about something else."""
    for find in _LAST:
        if not (match := find(sentence)) or _UNSURE_LEAD.search(match["lead"]):
            continue
        is_listed = sentence[: match.start("begin")].rstrip().endswith(" and")
        if is_listed and _PASSIVE.search(match["lead"]):
            continue
        if found := _judge_applied(sentence, below, match):
            verb = _ACT.search(sentence, match.start("begin"))
            if verb and is_of_something_else(sentence[verb.end() :]):
                continue
            said = _WHITHER.split(sentence[match.start("begin") : match.end()])[0]
            parts = _find_parts(said)
            return found._replace(
                parts=parts,
                whole=not parts and bool(WHOLE.search(said)),
                shas=found.shas or find_shas(match[0][match.start("begin") :]),
                firm=bool(found.shas) or find is _LAST[0],
            )
    return None


def _judge_applied(sentence: str, below: str, match: re.Match[str]) -> Verdict | None:
    if _OTHER_PATCH.search(match[0]) or _LIMITED.search(sentence):
        return None
    rest = _YOU_SEE.sub("", sentence[match.end() :])
    stop = _CLAUSE_END.search(rest)  # what follows "thanks" is another matter
    clause = _EDITED.sub("", rest[: stop.start()] if stop else rest)
    said, lead = sentence[match.start("begin") : match.end()], sentence[: match.start("begin")]
    if _UNSURE.search(said) or _UNSURE.search(clause) or TO_TRY.search(rest):
        return None
    if _TESTED.search(rest) and not _SHARED.search(said):
        return None
    if CONDITION.search(rest[:80]) or OF_SOMEBODY.match(rest):
        return None
    if _RELATIVE.search(lead) and not _BY_HAND.match(lead):
        return None
    if is_of_something_else(rest):
        return None
    parts = _find_parts(match[0])
    shas = find_shas(sentence[match.end() :]) or _find_shas_below(below)
    shas = shas or _find_own_revisions(sentence[match.start("begin") :])
    if not shas and "pushed" in said.lower() and _TO_FETCH.search(sentence[match.start("begin") :]):
        return None
    firm = _FIRM.search(sentence, match.start("begin"), match.end() + 4) or _PLACED.match(rest)
    is_edited = _TAKEN_UP.search(lead) or _BY_HAND.match(lead)
    is_firm = bool(shas) or (firm is not None and not is_edited)
    version = _VERSION.search(match[0])
    return Verdict(
        "applied",
        parts,
        whole=not parts and bool(WHOLE.search(match[0])),
        shas=shas,
        firm=is_firm,
        version=int(version[1]) if version else None,
    )


def _find_own_revisions(text: str) -> tuple[str, ...]:
    other = _OTHER_REVISION.search(text)
    return find_revisions(text[: other.start()] if other else text)


def _find_shas_below(below: str) -> tuple[str, ...]:
    line = below.lstrip(" \t\r\n")[:400].split("\n")[0].strip()
    return find_shas(line) if SHA_URL.fullmatch(line) or _SHA_LINE.fullmatch(line) else ()


def _find_parts(said: str) -> tuple[int, ...]:
    """Return the parts that "Applied 1-3 and 5", "Pushed 0001" or "the first two" name."""
    if _ALL.search(said):
        return ()
    if few := _FIRST_FEW.search(said):
        word = few[1].lower()
        return tuple(range(1, (_NUMBERS.get(word) or int(word)) + 1))
    if ordinal := _ORDINAL.search(said):
        return (_ORDINALS[ordinal[1].lower()],)
    parts: list[int] = []
    for found in _PARTS_IN.finditer(_VERSION.sub(" ", said)):
        first, last = int(found[1]), int(found[2] or found[1])
        if first > last or last > _MOST_PARTS:
            return ()
        parts += range(first, last + 1)
    return tuple(dict.fromkeys(parts))
