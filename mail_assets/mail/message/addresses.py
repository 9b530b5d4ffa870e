"""Parse the address lists of From, To, Cc and Reply-To (RFC 5322 section 3.4).

Forms that real mail writes against the standard are read too. Encoded words (RFC 2047) are decoded
only after a list is split, because an encoded comma is not a separator.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from mail_assets.mail.message.headers import decode_value, unfold

# --- pipermail's marks for `@` ---

#: Replacement of `@` in pipermail archives -> charset of the catalogue, languages.
#:
#: Mailman 2 (HyperArch.py) writes the translation of " at " in the list's language and charset:
#: `From: ana en example.org (Ana Gil)`. Source: catalogues of Mailman 2.1 up to 2.1.39
#: (messages/*/LC_MESSAGES/mailman.po). The entries for Korean, Norwegian and Swedish are empty, so
#: these languages use the English mark. An older Catalan mark, `a` without blanks, is missing: it
#: looks like any letter.
AT_MARKS = {
    " at ": ("ascii", "en da de fi fr hr hu ko lt no sv tr"),
    " a ": ("ascii", "ca ia it"),
    " a bildua ": ("ascii", "eu"),
    " -n ": ("ascii", "eu, before 2.1.6"),
    " em ": ("ascii", "pt_BR"),
    " en ": ("ascii", "ast es gl"),
    " la ": ("ascii", "ro"),
    " na ": ("ascii", "cs sk sl"),
    " op ": ("ascii", "nl"),
    " w ": ("ascii", "pl"),
    " at": ("ascii", "et"),
    "  ": ("ascii", "pt"),
    " ĉe ": ("iso8859-3", "eo"),
    " tại ": ("utf-8", "vi"),
    " στο ": ("iso8859-7", "el"),
    " на ": ("koi8-r", "ru sr uk"),
    " ב ": ("iso8859-8", "he"),
    " عند ": ("utf-8", "ar"),
    "در": ("utf-8", "fa"),
    " ＠ ": ("euc-jp", "ja"),
    "在": ("gb2312", "zh_CN"),
    "於": ("big5", "zh_TW"),
}
# ASCII with surrogates, the form in which fields are split (see `_raw`). Longest first, so ` at `
# wins over ` at`.
_WRITTEN = sorted(
    {
        mark.encode(charset).decode("ascii", "surrogateescape")
        for mark, (legacy, _) in AT_MARKS.items()
        for charset in (legacy, "utf-8")
    },
    key=len,
    reverse=True,
)
_OBFUSCATED = re.compile(
    r"([^\s@<>()\[\]\",:;\udc80-\udcff]{1,64}?)(" + "|".join(map(re.escape, _WRITTEN)) + r")"
    r"((?:[A-Za-z0-9_-]{1,63}+\.){1,10}+[A-Za-z0-9-]{2,63}+)[ ]*+(?=\(|\Z)"
)
#: Mark as written -> its charset, if that is neither ASCII nor UTF-8.
_LEGACY = {
    mark.encode(charset).decode("ascii", "surrogateescape"): charset
    for mark, (charset, _) in AT_MARKS.items()
    if charset not in ("ascii", "utf-8")
}
_ENGLISH_AT = re.compile(r"(?<!\s)\s++at\s++")


def _restore_at(value: str) -> str:
    """Return a From field with the `@` restored in pipermail's `user at host.org (Name)`.

    The whole field must have that form, because `en` and `a` also occur in names. For an author
    without a name, pipermail writes the disguised address in the brackets too.
    """
    found = _OBFUSCATED.match(value)
    if found is None:
        return value
    rest = value[found.end() :]
    if again := _OBFUSCATED.fullmatch(rest.strip()[1:-1]):
        rest = f"({again[1]}@{again[3]})"
    return f"{found[1]}@{found[3]} {rest}"


def find_charset(value: str) -> str:
    """Return the charset that a non-ASCII mark in a From field reveals, or "".

    Pipermail writes its marks in the charset of the list, and assumes this charset for bodies too.
    """
    found = _OBFUSCATED.match(value)
    return _LEGACY.get(found[2], "") if found else ""


# --- address lists ---

MAX_ADDRESSES = 10_000
MAX_EMAIL = 320  # characters: 64 for the local part, 255 for the domain (RFC 5321 section 4.5.3)
MAX_NESTED_COMMENTS = 3  # within angle brackets
MAX_NAME = 255  # characters of a name kept
MAX_CACHED = 1_000  # bytes; longer fields are not cached
MAX_NAME_PIECES = 6  # an unquoted `Doe, Jo, MD` has five pieces

# An encoded word; some programs leave marks in it unencoded, against RFC 2047 section 5
_ENCODED_WORD = r"=\?[\w*.-]{1,40}\?[bBqQ]\?[^?\s]{0,200}+\?="
_TOKEN = re.compile(
    r'(?P<quoted>"(?:[^"\\]|\\.)*+")|(?P<angle><[^<>]*>)|(?P<mark>[(),;:])'
    rf'|(?P<word>{_ENCODED_WORD}|(?:(?!{_ENCODED_WORD})[^"<(),;:])++|[<"])'
)
# One mailbox of a list whose members are all `Name <a@b>`, `"Name" <a@b>` or `a@b`
_SIMPLE = re.compile(
    r"""[ ]*+(?:
        (?:"([^"\\<>\x00-\x1f\x7f\udc80-\udcff]*+)"[ ]*+ | ([\w .'!#$%&*/{|}~^`+-]*+))
        <([\w.+=/-]{1,64}+@[\w.-]{1,255}+)>
      | ([\w.+=/-]{1,64}+@[\w.-]{1,255}+)
    )[ ]*+(?:,|\Z)""",
    re.ASCII | re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")
# An unclosed quote matches too; otherwise searching from each escaped quote is quadratic.
_ESCAPED_IN_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+("?)|\\[()]')
_ESCAPED_MARK = re.compile(r"\\[()]")
_COMMENT = re.compile(r"\([^()]*+\)")
# RFC 5322 section 4.4 allows blanks around the dots and the @
_SPACED = re.compile(
    r"[^\s.@]++(?:\s*+\.\s*+[^\s.@]++)*+\s*+@\s*+[^\s.@]++(?:\s*+\.\s*+[^\s.@]++)*+\s*+\Z"
)
_SCHEME = re.compile(r"(?:mailto|smtp):", re.I)
# Outlook's `Jo [mailto:jo@example.org]`, and a URL among words
_IN_SQUARES = re.compile(r"\[\s*(?:mailto|smtp):\s*+([^\s<>\[\]]{1,320})\s*\]", re.I)
_AS_URL = re.compile(r"(?<![\w<])mailto:(?=[\w\"])", re.I)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES), re.I)
# An address in angle brackets within a name; the closing bracket may be lost
_INNER = re.compile(r"<\s*([^\s<>@]{1,64}@[^\s<>]{1,255})\s*(?:>|\Z)")
_QUOTED_LOCAL = re.compile(r'"((?:[^"\\]|\\.)*+)"\s*@(.*)', re.S)
_DOT_ATOM = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*")
# Replacements of `@` by archives and people, in an address without `@`
_DISGUISED_AT = re.compile(
    r"(?<!\s)(?:\s*+(?:\(at?\)|\[at\]|%40)|\s++at\s)\s*+(?=[\w-]++\.[\w.-]++\Z)", re.I
)
# Raw ISO-2022-JP in mail of the 1990s: its bytes look like brackets and commas
_RAW_JAPANESE = re.compile(r"\x1b\$[@B][^\x1b]*+(?:\x1b\([BJ])?")


class Address(NamedTuple):
    """A mailbox. The email is in lower case and may lack a domain; the name may be empty."""

    name: str
    email: str


def parse_addresses(
    values: Iterable[bytes], fallback: str = "", *, obfuscated: bool = False
) -> tuple[Address, ...]:
    """Return the mailboxes of raw field values, groups flattened, at most MAX_ADDRESSES + 1.

    Linear for any input. Unbalanced quotes and brackets may cost a name but never the rest of the
    list. `fallback` is the charset to try on raw 8-bit bytes. With `obfuscated`, pipermail's `user
    at host` is read as `user@host`.
    """
    found: tuple[Address, ...] = ()
    for value in values:
        read = _read_again if len(value) <= MAX_CACHED else _read
        found += read(value, fallback, obfuscated)
        if len(found) > MAX_ADDRESSES:
            return found[: MAX_ADDRESSES + 1]
    return found


def _read(value: bytes, fallback: str, obfuscated: bool) -> tuple[Address, ...]:
    text = unfold(value).decode("ascii", "surrogateescape")
    if simple := _simple_mailboxes(text):
        return tuple(simple)
    if obfuscated:
        text = _restore_at(text)
    return tuple(islice(_mailboxes(text, fallback, obfuscated), MAX_ADDRESSES + 1))


_read_again = lru_cache(maxsize=4_096)(_read)  # the same people write to a list often


def _simple_mailboxes(value: str) -> list[Address]:
    """Return the mailboxes of a field if all are simple (99 %), else []; ten times as fast."""
    if "=?" in value or value.count("(") != value.count(")"):
        return []
    found: list[Address] = []
    at = 0
    while at < len(value):
        mailbox = _SIMPLE.match(value, at)
        if mailbox is None:
            return []
        quoted, name, email, alone = mailbox.groups()
        label = " ".join((quoted or name or "").split()).strip(", ")
        found.append(Address(_unquote(label)[:MAX_NAME], (email or alone).rstrip(".").lower()))
        at = mailbox.end()
    return found


def _mailboxes(value: str, fallback: str, obfuscated: bool) -> Iterator[Address]:
    name: list[str] = []
    comment: list[str] = []
    angle: str | None = None
    quoted = ""  # the quoted text directly before
    depth = before = 0  # before: pieces of the name before the angle brackets
    if ":" in value:
        value = _AS_URL.sub("", _IN_SQUARES.sub(r"<\1>", value))
    if "&" in value:
        value = _ENTITY.sub(lambda found: _ENTITIES[found[0].lower()], value)
    if "\x1b$" in value:
        value = _RAW_JAPANESE.sub(_encode_japanese, value)
    if "\\" in value:
        value = _ESCAPED_IN_COMMENT.sub(_blank_escaped_marks, value)
    if value.count("(") != value.count(")"):
        value = value.replace("(", " ").replace(")", " ")
    for kind, token in _tokens(value):
        if depth:  # inside a comment, which may nest
            depth += (token == "(") - (token == ")") if kind == "mark" else 0
            if depth:
                comment.append(token)
        elif kind == "mark" and token == "(":
            depth, comment = 1, []
        elif kind == "mark" and token == ":":
            name = []  # the words before were the name of a group
        elif kind == "mark" and token in ",;":
            is_short = angle is None and 0 < len(name) < MAX_NAME_PIECES
            if token == "," and is_short and not _has_email(name, obfuscated):
                name.append(", ")  # `Doe, Jo <jo@example.org>` without its quotes
                continue
            yield from _mailbox(name, comment, angle, fallback, obfuscated)
            name, comment, angle = [], [], None
        elif kind == "angle":
            is_again = angle is not None and token[1:-1].strip() == angle.strip()
            if is_again and not "".join(name[before:]).strip():
                continue
            if angle is not None and "@" in angle:  # the comma is missing
                yield from _mailbox(name[:before], comment, angle, fallback, obfuscated)
                name, comment = name[before:], []
            elif angle is not None:  # `Jo <the man> <jo@example.org>`
                name.append(angle)
            angle, before = token[1:-1], len(name)
        elif kind == "quoted":
            name.append(_ESCAPED.sub(r"\1", token[1:-1]))
            quoted = token
            continue
        elif kind == "word" and quoted and angle is None and _follows_local(token):
            domain, _, rest = token.lstrip().partition(" ")  # `"jo roe"@example.org`
            angle, name = f"{quoted}{domain}", [*name[:-1], rest]
            before = len(name)
        elif kind == "word" and token not in '<"':
            name.append(token)
        quoted = ""
    yield from _mailbox(name, comment, angle, fallback, obfuscated)


def _follows_local(word: str) -> bool:
    """Return whether a word is the domain of a quoted local part; after a blank it needs a dot."""
    return word.startswith("@") or (
        word.lstrip().startswith("@") and "." in word.split(maxsplit=1)[0]
    )


def _blank_escaped_marks(found: re.Match[str]) -> str:
    # quoted text stays as it is
    return found[0] if found[1] else _ESCAPED_MARK.sub(" ", found[0])


def _tokens(value: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(value):
        token = _TOKEN.match(value, at)
        if token is None:  # a stray bracket or quote
            at += 1
            continue
        at = token.end()
        if token[0] == '"':  # never closed, so no later quote can be trusted
            value, at = value[at:].replace('"', " "), 0
            continue
        yield token.lastgroup or "", token[0]


def _has_email(name: list[str], obfuscated: bool) -> bool:
    text = "".join(name)
    return "@" in text or (obfuscated and _ENGLISH_AT.search(text) is not None)


def _mailbox(
    name: list[str], comment: list[str], angle: str | None, fallback: str, obfuscated: bool
) -> Iterator[Address]:
    phrase = " ".join("".join(name).split()).strip("<>, ")
    if "<" in phrase and "@" in phrase and phrase.count("<") > phrase.count(">"):
        phrase += ">"
    if angle is None:
        label, email = _split_bare(phrase, fallback, obfuscated)
    else:
        label = _text(phrase, fallback)
        email = _ENGLISH_AT.sub("@", " ".join(angle.split())) if obfuscated else angle
    note = _text("".join(comment), fallback)
    if not email and "@" in note:  # `Jo Roe (jo@example.org)`
        email = next(word for word in note.split() if "@" in word).strip("<>,;")
    label = label or note
    email = _clean_email(email, fallback)
    if email and f"<{email}>" in label.lower():  # `"Jo <jo@example.org>" <jo@example.org>`
        label = label[: label.lower().index(f"<{email}>")].strip("\"' ") or label
    if email or label:
        yield Address(label[:MAX_NAME], email)


def _split_bare(phrase: str, fallback: str, obfuscated: bool) -> tuple[str, str]:
    """Split a mailbox without brackets; one ASCII word without `@` is a local address (`root`)."""
    if obfuscated:
        phrase = _ENGLISH_AT.sub("@", phrase)
    if "@" in phrase and _SPACED.match(phrase):
        return "", phrase
    is_encoded = "=?" in phrase  # some programs encode the whole mailbox, others quote it
    decoded = _text(phrase, fallback) if is_encoded else phrase
    if found := _INNER.search(decoded):
        return _unquote(f"{decoded[: found.start()]} {decoded[found.end() :]}".strip()), found[1]
    if is_encoded:
        return decoded, ""
    words = phrase.split()
    bare = words[0] if len(words) == 1 and phrase.isascii() else ""
    email = next((word for word in words if "@" in word.strip("@")), bare)
    return _text(phrase.replace(email, " ") if email else phrase, fallback), email


def _clean_email(email: str, fallback: str) -> str:
    """Return an address in lower case, without comments, route (`@relay:`) and stray marks.

    Blanks are kept only in a quoted local part. If a local part needs no quotes, they are removed.
    """
    if "@" not in email:
        email = _DISGUISED_AT.sub("@", email, count=1)
    elif email.startswith('"') and (found := _QUOTED_LOCAL.fullmatch(email)):
        return _join_quoted(" ".join(found[1].split()), found[2])
    if "(" in email:
        for _ in range(MAX_NESTED_COMMENTS):
            email = _COMMENT.sub("", email)
    email = "".join(decode_value(_raw(email), fallback).split())
    email = _SCHEME.sub("", email.strip("'" if "@[" in email else "[]{}'"), count=1)
    if email.startswith("@") and ":" in email:
        email = email.rpartition(":")[2]
    email = email.strip('"')
    return email.rstrip(".").lower() if len(email) <= MAX_EMAIL else ""


def _join_quoted(local: str, domain: str) -> str:
    text = _ESCAPED.sub(r"\1", local)
    domain = "".join(domain.split()).rstrip(".")
    email = (
        f"{text if _DOT_ATOM.fullmatch(text) else f'{chr(34)}{local}{chr(34)}'}@{domain}".lower()
    )
    return email if len(email) <= MAX_EMAIL else ""


def _encode_japanese(raw: re.Match[str]) -> str:
    data = base64.b64encode(_raw(raw[0])).decode("ascii")
    return f"=?iso-2022-jp?b?{data}?="


def _text(value: str, fallback: str) -> str:
    return _unquote(" ".join(decode_value(_raw(value), fallback).split()))


def _raw(text: str) -> bytes:
    """Return the bytes of a piece of a field.

    Fields are split as ASCII with a surrogate for each other byte (PEP 383). Latin-1 would not do:
    in it the second bytes of `à` and of the Cyrillic `х` are white space.
    """
    return text.encode("utf-8", "surrogateescape")


def _unquote(name: str) -> str:
    # an apostrophe on one side only belongs to the name
    name = name.strip('" ')
    if name.startswith("''") or name.endswith("''"):
        return name.strip("'\" ")
    return name[1:-1].strip('" ') if len(name) > 1 and name[0] == name[-1] == "'" else name
