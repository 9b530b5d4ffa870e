"""Words after a verb of a verdict which show that it is not about a patch, or was undone.

Examples: "Applied for a job", "applied to each byte", "landed in Berlin", "merged by mistake".
"""

import re

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
    r"memory|paper|disk|tape|mind|heart|things|later|membership|admission|write-?back|writing|"
    r"transmission|sending|deletion|processing|execution|delivery|i/o)"
    r"(?:[^,;.:!?()\n]|\.(?=\w)){0,60})",
    re.I,
)
#: After "for" an article means that a person applies; after "by" a program or a mistake does it.
_PERSONAL = re.compile(r"an?\b|some\b|(?:my|his|her|their)\b|membership|admission|later", re.I)
#: After "for": data wait in a queue.
_OF_DATA = re.compile(
    r"write-?back|writing|transmission|sending|deletion|processing|execution|delivery|i/o", re.I
)
_POST = re.compile(
    r"\b(?:jobs?|positions?|roles?|post|grants?|scholarship|fellowship|internship|course|visa|"
    r"licen[cs]e|patent|membership|programme|funding)\b",
    re.I,
)
#: It was a mistake, was undone, postponed or combined with another patch, or is a joke.
_UNDONE = re.compile(
    r"^\s+(?:accidentally|mistakenly|prematurely|tomorrow|soon|next week|the wrong)\b|"
    r"^\s*[:=]\s*(?:no|none|not|never|0|false|n/a)\b|\(not\b|"
    r"^[^,;.]*\b(?:by (?:mistake|accident)|in error)\b|"
    r"^\s+with patch(?:es)? #?\d+\s*[.!]?$|\b(?:"
    r"(?:in(?:to)?|to|on) (?:the |a )?wrong|too (?:late|early|soon)|in (?:spirit|vain)|"
    r"as an? (?:experiment|test|trial|joke|hack|draft|exercise|example)|back(?:ed|ing)? "
    r"(?:it |this |them )?out|undone|undid|undoing|un-?applied|revert(?:ed|ing)|"
    r"then (?:i )?(?:dropped|removed)|(?:i|we) wish|or so (?:i|we)|(?:just )?(?:kidding|joking)|"
    r"here,? (?:and |i )?(?:will|going to)|into (?:one|a single|patch(?:es)? #?\d+)|"
    r"(?:to|through) (?:the )?mailing list|to (?:the list|v\d{1,2}(?![\w.-]| branch| tree))|"
    r"(?:to|until) the next (?:merge window|cycle|release)(?! branch| tree| queue)|"
    r"(?:this|it) (?:still )?(?:fails|breaks|crashes|hangs))\b",
    re.I,
)
#: "Picked up a cold"
_PICKED = re.compile(r"\s+up (?P<what>(?:an?|some|my|his|her|our|their)\b[^,;.]{0,40})", re.I)
_PATCHES = re.compile(r"\b(?:patch\w*|series|commit\w*|fix\w*|changes?|versions?|trees?)\b", re.I)


def is_of_something_else(rest: str) -> bool:
    """Return whether the words after a verb show that it is not about a patch, or was undone."""
    picked = _PICKED.match(rest)
    if _UNDONE.search(rest) or (picked and not _PATCHES.search(picked["what"])):
        return True
    found = _COMPLEMENT.match(rest)
    if not found or _HOME.search(found["what"]):
        return bool(found and _POST.search(found["what"]))
    if found["prep"].lower() == "for":
        what = found["what"]
        return any((_PERSONAL.match(what), _OF_DATA.match(what), _POST.search(what)))
    return found["prep"].lower() != "by" or found["what"].lower().startswith("the ")
