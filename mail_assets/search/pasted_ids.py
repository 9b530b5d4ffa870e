"""Message-IDs that somebody pasted instead of a question: bare, in brackets, or in a link."""

import re
from urllib.parse import unquote

from mail_assets.mail.message.ids import normalize_id

_SCHEME = re.compile(r"(?i)\A(?:mid|id|message-id):\s*")
_LINK = re.compile(r"(?i)\Ahttps?://[^/\s]+/")
#: Links that say the id in their query: ?i=ID, ?id=ID, ?q=ID.
_IN_QUERY = re.compile(r"[?&](?:i|id|q|mid|message-id)=([^&#\s]+)")
#: Signs that end a sentence, or close what an id stood in.
_AROUND = ".,;:)'\""
#: Ids that are looked for.
MAX_IDS = 6


def find_pasted_ids(text: str) -> tuple[str, ...]:
    """Return the Message-IDs that a text may be, most likely first; none where it is no id.

    An id may hold `/`, several `@`, a domain in square brackets and, in brackets, quoted words
    (RFC 5322, section 3.6.4, and what programs make of it). In a link it may be percent-encoded.
    """
    text = _SCHEME.sub("", text.strip(), count=1)
    if text.startswith("<") and text.endswith(">"):
        return _normalize([text])
    if any(sign.isspace() for sign in text) or "@" not in unquote(text):
        return ()
    if link := _LINK.match(text):
        return _normalize(_in_link(text[link.end() :]))
    return _normalize([text, unquote(text), text.strip(_AROUND)])


def _in_link(rest: str) -> list[str]:
    """Return what may be the id in a link, without its scheme and host.

    The last segment of the path with an `@`, and that one with those before it: an id may hold `/`.
    What archives put behind an id (/raw, /T/#u) has none.
    """
    found = [unquote(value) for value in _IN_QUERY.findall(rest)]
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    segments = [unquote(segment) for segment in path.split("/")]
    places = [place for place, segment in enumerate(segments) if "@" in segment]
    if places:
        last = places[-1]
        found += ["/".join(segments[first : last + 1]) for first in range(last, -1, -1)]
    return [*found, unquote(rest)]


def _normalize(texts: list[str]) -> tuple[str, ...]:
    ids = (normalize_id(text.strip("<>")) for text in texts)
    return tuple(dict.fromkeys(one for one in ids if "@" in one.strip("@")))[:MAX_IDS]
