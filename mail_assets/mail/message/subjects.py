"""The base subject, which all messages of a conversation share (RFC 5256 section 2.1)."""

import re

MAX_SUBJECT = 2_000  # characters; a Postgres btree entry holds at most 2,704 bytes

_PREFIX = re.compile(
    r"\s*(?:(?:re|res|aw|sv|antw|vs|odp|ynt|fwd?|wg|tr|回复|回覆|答复|答覆|转发|轉寄)\s*"
    r"(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*[:：]|\[[^\]\[]{1,60}\])",
    re.I,
)
_FORWARDED = re.compile(r"\s*\(fwd\)\s*\Z", re.I)


def base_subject(subject: str) -> str:
    """The subject without reply and forward prefixes, list tags and patch counters.

    `[HACKERS] Re: AW: Re[2]: [PATCH v3 2/5] fix x (fwd)` becomes `fix x`. A subject made of
    nothing else keeps its last part.
    """
    at = 0
    while prefix := _PREFIX.match(subject, at):
        if not subject[prefix.end() :].strip():
            break
        at = prefix.end()
    base = subject[at:]
    while (shorter := _FORWARDED.sub("", base)) != base and shorter.strip():
        base = shorter
    return " ".join(base.split())
