"""Tell the sentences that state a decision: applied, committed, rejected, withdrawn.

A sentence states one in one of three forms: the act alone ("Applied, thanks."), who did it ("I
have just pushed this", "The group decided to ..."), or what became of the thing ("The patch was
rejected"). Only its beginning counts: what stands in a clause behind "that", "since" or "after" is
not what the sentence states. Questions, denials, conditions, plans, guesses and trials state none.
"""

import re

#: What is done to a patch, a proposal or a report by those who decide.
ACTS = (
    *("applied", "committed", "pushed", "merged", "checked in", "queued", "accepted", "approved"),
    *("fixed", "reverted", "backed out", "rejected", "declined", "withdrawn", "superseded"),
    *("backpatched", "back-patched", "resolved", "closed"),
)
#: What a thing may become beside that; said of oneself these tell a story: "I removed the disk".
FATES = (
    *("dropped", "removed", "solved", "implemented", "released", "decided", "agreed", "postponed"),
    *("deferred", "returned with feedback", "added to the todo list", "published", "adopted"),
)
#: What a body of people does.
RESOLVES = ("agreed", "decided", "resolved", "voted", "approved", "rejected", "accepted", "adopted")
#: What is decided about.
THINGS = (
    *("patch", "patches", "patchset", "series", "change", "changes", "commit", "fix", "bug"),
    *("issue", "problem", "proposal", "request", "suggestion", "feature", "resolution", "ticket"),
)
PRONOUNS = ("this", "that", "it", "they", "these", "those", "both", "all")
#: Words before a statement that make it none.
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
#: Words behind it that make it a trial.
TRIALS = (
    *("locally", "on my", "to test", "to try", "and it", "and now", "and got", "and get"),
    *("and ran", "and run", "and tested", "and tried", "and rebuilt", "but it still"),
)

_ACT, _FATE = "|".join(ACTS), "|".join((*ACTS, *FATES))
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
    rf"(?:[\w'’]{{1,12}},? )?(?:{'|'.join(PRONOUNS)})) (?:{_BEEN} ){{1,4}}(?P<act>{_FATE})\b"
)
_WITHDRAWN = re.compile(
    r"(?i)i (?:hereby )?(?P<act>withdraw|am withdrawing|am rejecting|am closing|am reverting)\b"
)
_FORMS = (_ALONE, _DONE_BY, _RESOLVED, _BECAME, _WITHDRAWN)
_HEDGED = re.compile(rf"(?i)\b(?:{'|'.join(HEDGES)})\b|n['’]t\b|[\"“”«»]")
_TRIED = re.compile(rf"(?i)\b(?:{'|'.join(TRIALS)})\b")


def is_decision(text: str) -> bool:
    """Tell whether a sentence states a decision that has been taken."""
    plain = " ".join(text.split())
    if plain.rstrip("\"')* ").endswith("?"):
        return False
    stated = next(filter(None, (form.match(plain) for form in _FORMS)), None)
    if stated is None or _HEDGED.search(plain, 0, stated.start("act")):
        return False
    return _TRIED.search(plain, stated.end()) is None
