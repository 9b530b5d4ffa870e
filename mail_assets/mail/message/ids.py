"""Parse Message-ID, In-Reply-To and References (RFC 5322 section 3.6.4).

Ids have no angle brackets and no whitespace, and keep their case. Values are passed in decoded,
because some web front ends send RFC 2047 words here.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence, Set

MAX_ID = 500  # characters; a Postgres btree entry holds at most 2,704 bytes
MAX_REFERENCES = 1_000

_ANGLE = re.compile(r"<([^<>]+)>")
_NO_WORD = re.compile(r"[\s\x00-\x1f\x7f<>]")
# exmh and MH name the author before the id: `Message from Jo <jo@example.org> of "Fri, 5 Dec"
# <1@example.org>`. Emacs writes `Jo <jo@example.org>'s message of "Fri, 5 Dec"`. Reading such an
# address as an id would join unrelated threads.
_AUTHOR = re.compile(r"(?i)\bfrom:?\s[^<>\d]{0,100}<[^<>]{0,500}>|<[^<>]{0,500}>['\u2019]s\s")
# Comments before the id of a message: `(added by a relay <postmaster@...>) <id>`
_COMMENTS = re.compile(r"\A\s*+(?:\([^()]*+\)\s*+)++")
# Wrong answers to git send-email's prompt for the message to reply to, as in public-inbox
_ANSWERS = frozenset({"y", "n"})
#: End of every id that stands for a forgotten message in other mail (RFC 2606: .invalid).
FORGOTTEN_DOMAIN = "@forgotten.invalid"


def make_placeholder(digest: bytes) -> str:
    """Return the placeholder for a forgotten id, made from its digest."""
    return f"{digest.hex()[:32]}{FORGOTTEN_DOMAIN}"


def is_placeholder(message_id: str) -> bool:
    """Return whether an id is a placeholder for a forgotten one.

    Pages say that such a message was forgotten. An id of this form in mail is ignored, because
    otherwise a stranger could make a page say so.
    """
    return message_id.endswith(FORGOTTEN_DOMAIN)


def parse_message_id(values: Iterable[str]) -> str | None:
    """Return the first id of the Message-ID fields, or None without one.

    `<id> (added by postmaster@...)` and an id without brackets are read. Several words without
    brackets (`PM200011:12:45 AM`) are not an id.
    """
    for value in values:
        own = _COMMENTS.sub("", value, count=1) if "(" in value else value
        found = find_ids(own) or _bare(own, needs_at=False)
        if found and any(map(str.isalnum, found[0])) and not is_placeholder(found[0]):
            return found[0]
    return None


def normalize_id(text: str) -> str:
    """Return a typed or pasted id in the stored form, or "" if it cannot be one.

    It may have brackets. An id that is too long becomes its hash, as in replies to it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:  # the command line had bytes that are not UTF-8
        return ""
    inner = text.strip().removeprefix("<").removesuffix(">")
    return next(iter(find_ids(f"<{inner}>")), inner)


def generate_message_id(*parts: str) -> str:
    """Return an id for a message without one; equal parts give equal ids in every archive."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32] + "@generated.invalid"


def parse_parents(
    in_reply_to: Sequence[str], references: Sequence[str], addresses: Set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of In-Reply-To and of References.

    `addresses` are those of the message's people. They are not ids, except one that both fields
    name.
    """
    direct, chain = parse_in_reply_to(in_reply_to), parse_references(references)
    if addresses.isdisjoint(map(str.lower, (*direct, *chain))):
        return direct, chain
    others = addresses - {x.lower() for x in {*direct} & {*chain}}
    return parse_in_reply_to(in_reply_to, others), parse_references(references, others)


def parse_in_reply_to(values: Iterable[str], addresses: Set[str] = frozenset()) -> tuple[str, ...]:
    """Return the ids of the In-Reply-To fields in order; prose without an id gives none.

    `addresses` are those of the message's people, in lower case. They are never ids (as in
    PublicInbox::MID::references).
    """
    found: dict[str, None] = {}
    for value in values:
        found |= dict.fromkeys(_find_parents(value) or _bare(value, needs_at=True))
    return _capped(found, addresses) if found else ()


def parse_references(values: Iterable[str], addresses: Set[str] = frozenset()) -> tuple[str, ...]:
    """Return the ids of the References fields, oldest first; if too many, the first and last.

    `addresses`: see `parse_in_reply_to`.
    """
    found: dict[str, None] = {}
    for value in values:
        named = _find_parents(value)
        if not named and "<" not in value:
            named = [x for word in re.split(r"[\s,]+", value) for x in _bare(word, needs_at=True)]
        found |= dict.fromkeys(named)
    return _capped(found, addresses) if found else ()


def find_ids(value: str) -> list[str]:
    """Return all ids in angle brackets, without the whitespace that folding left inside."""
    found = _ANGLE.findall(value)
    together = "".join(found)
    fits = len(together) <= MAX_ID or max(map(len, found)) <= MAX_ID
    if fits and together.isprintable() and " " not in together:
        return found  # nothing to drop, nothing too long
    return [_short(x) for x in map(_drop_unseen, found) if x]


def _drop_unseen(text: str) -> str:
    """Return an id without blanks, controls and invisible characters, so that no two look alike."""
    return "".join(x for x in text if x.isprintable() and not x.isspace())


def _find_parents(value: str) -> list[str]:
    # drops the address of an author in prose
    may_name_author = "'s" in value or "\u2019s" in value or "rom" in value or "ROM" in value
    return find_ids(_AUTHOR.sub(" ", value) if may_name_author else value)


def _bare(value: str, *, needs_at: bool) -> list[str]:
    word = value.strip().strip("<>").strip()
    if not word or _NO_WORD.search(word) or (needs_at and "@" not in word):
        return []
    return [_short(x) for x in [word if word.isascii() else _drop_unseen(word)] if x]


def _short(found: str) -> str:
    # replies hash a long id in the same way, so they still find it
    if len(found) <= MAX_ID:
        return found
    return hashlib.sha256(found.encode()).hexdigest()[:32] + "@overlong.invalid"


def _capped(found: Collection[str], addresses: Set[str]) -> tuple[str, ...]:
    ids = tuple(x for x in found if not is_placeholder(x))
    is_known = bool(addresses) and not addresses.isdisjoint(map(str.lower, ids))
    if is_known or not _ANSWERS.isdisjoint(ids):
        ids = tuple(x for x in ids if x not in _ANSWERS and x.lower() not in addresses)
    return ids if len(ids) <= MAX_REFERENCES else (ids[0], *ids[1 - MAX_REFERENCES :])
