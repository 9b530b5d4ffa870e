"""Tell the sentences that state a decision: applied, committed, rejected, withdrawn.

A sentence states one in a few forms: at its beginning ("Applied, thanks."), in the first person
("I have just pushed this"), or of the thing decided ("The patch was rejected"). A sentence that
asks, denies, or speaks of what would or will be states none.
"""

import re

#: What is done with a patch, a proposal or a report, as past participles.
DONE = (
    *("applied", "committed", "pushed", "merged", "checked in", "queued", "accepted", "approved"),
    *("reverted", "backed out", "rejected", "declined", "withdrawn", "dropped", "superseded"),
    *("fixed", "resolved", "solved", "implemented", "released", "decided", "agreed", "closed"),
    *("backpatched", "back-patched", "installed", "removed", "withdrew", "postponed", "deferred"),
    *("added to (?:the )?todo", "added to current", "published"),
)
#: What takes a statement back, or makes it one about what may be.
HEDGES = (
    *("not", "never", "no", "cannot", "nobody", "nothing", "yet", "without", "unless", "until"),
    *("if", "would", "could", "should", "might", "may", "can", "will", "shall", "must", "let's"),
    *("once", "when", "before", "whether", "hope", "hoping", "please", "want", "wanted", "try"),
    *("tried", "trying", "going to", "about to", "to be", "locally", "intend", "plan", "propose"),
    *("suggest", "think", "need", "needs", "expect", "wait", "waiting", "hardly", "almost"),
)

_DONE = "|".join(word.replace(" ", r"\s") for word in DONE)
_THING = (
    r"patch(?:es|set)?|series|change|changes|fix|this|that|it|they|these|those|both|all|bug|issue|"
    r"problem|proposal|request|version|commit|code|first|second|rest"
)
_STATED = re.compile(
    rf"(?i)(?:ok(?:ay)?|yes|great|good|nice|thanks?|thank you|now|so|well|done)?[\s,.!:;-]{{0,3}}"
    rf"(?:(?:(?:both|all|series|whole|patch|patches|this|have|has|been|now|just|already)\s)"
    rf"{{0,3}}(?:{_DONE})\b|"
    rf"(?:i|we|i've|we've)\s(?:(?:have|had|has|just|now|also|already|'ve|went|ahead|and)\s)"
    rf"{{0,4}}(?:{_DONE})\b)"
)
_STATED_OF = re.compile(
    rf"(?i)\b(?:{_THING})\s(?:(?:has|have|had|been|was|were|is|are|got|now|just|already|also)\s)"
    rf"{{1,4}}(?:{_DONE})\b"
)
_HEDGED = re.compile(rf"(?i)\b(?:{'|'.join(HEDGES)})\b|n['’]t\b|['’](?:ll|d)\b")
_QUOTED = re.compile(r"[\"“”«»]")


def is_decision(text: str) -> bool:
    """Tell whether a sentence states a decision that has been taken."""
    if text.rstrip("\"')* ").endswith("?") or _QUOTED.search(text) or _HEDGED.search(text):
        return False
    return _STATED.match(text) is not None or _STATED_OF.search(text) is not None
