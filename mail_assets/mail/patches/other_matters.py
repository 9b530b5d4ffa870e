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
