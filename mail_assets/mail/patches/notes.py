"""Read an author's notes on a patch, which are next to its diff.

They are its base commit, its change id, links to earlier versions, and the changes since these.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from mail_assets.mail.patches.patch import MAX_CHANGELOG, MAX_LINE, MAX_LINKS, EarlierVersion

MAX_LABEL = 80  # characters before a link that describe it
MAX_ID = 250  # characters of a Message-ID

_BASE_COMMIT = re.compile(r"\s{0,4}base-commit:\s{1,4}([0-9a-f]{7,64})\s{0,9}\Z", re.I)
_CHANGE_ID = re.compile(r"\s{0,4}change-id:\s{1,4}([\w.+@-]{8,200})\s{0,9}\Z", re.I)
_LINK = re.compile(r"https?://[^/\s]{1,200}/\S{1,800}|<[^<>\s]{1,120}@[^<>\s]{1,130}>")
_MESSAGE_ID = re.compile(
    r"[^\s<>\"()\[\]\x00-\x1f\x7f]{1,120}@[^\s<>\"()\[\]@\x00-\x1f\x7f]{1,130}"
)
# HyperKitty names a list by its address, and the mail by a digest
_OF_LIST = re.compile(r"/list/[^/]{1,250}/(?:thread|message)/")
_KEY_OF_QUERY = re.compile(r"[\w-]{1,20}=")
_AFTER_URL = ".,;:!?)>]'\""
_VERSION = re.compile(
    r"(?<![\w.])(rfc[\s-]{0,3})?(?:patch[\s-]{0,3})?v[-. ]?(\d{1,3})(?![\w.]*\w)", re.I | re.A
)
_EARLIER = re.compile(
    r"\b(?:previous|prior|earlier|last|old|older|original|first|initial)(?:ly)?\s{1,3}(?:\w{1,12}\s{1,3})?"
    r"(?:version|posting|posted|post|series|patch|patchset|submission|submitted|revision|rfc|"
    r"iteration|attempt|discussion|thread)",
    re.I,
)
_RFC = re.compile(r"\W{0,6}(?:link\s{1,3}to\s{1,3})?(?:the\s{1,3})?rfc\b[^a-z]{0,20}\Z", re.I)
# the link is to something else
_OTHER = re.compile(
    r"\b(?:depend|rel(?:y|ies|ying) |(?:re)?based on|base-|requir|on top|prereq|need|"
    r"appl(?:y|ies|ied) (?:to|on|after)|reported|closes|suggest|fixes|cover|"
    r"tree|branch|repo|git\b|follow)",
    re.I,
)
_FOOTNOTE = re.compile(r"\s{0,8}\[(\d{1,3})\]:?\s{0,8}\Z", re.A)
_REFERENCE = re.compile(r"\[(\d{1,3})\]", re.A)
_ONLY_LINK = re.compile(r"\W{0,8}links?\W{0,4}", re.I)
_BULLET = re.compile(r"\s{0,12}(?:[-*+•o·]\s|\d{1,3}[.)]\s|\(\d{1,3}\)\s|\s\S)")
_KIND = r"(?:rfc\s{0,3}|patch\s{0,3})?"
_HEAD = re.compile(
    r"\W{0,8}(?:(?:change[\s-]?logs?|changes?|changed|history|diff(?:erence)?s?|delta|updates?|"
    r"revision history|version history|what.s new)\b(?P<rest>[^\n]{0,80})|"
    rf"(?:since|from|compared to)\s{{1,3}}{_KIND}v?\d{{1,3}}\b[^\n]{{0,60}}:\s{{0,9}}\Z|"
    rf"{_KIND}v(?P<old>\d{{1,3}})\s{{0,4}}(?:->|=>|-->|→|to|\.\.+|-|~|/)\s{{0,4}}"
    rf"v?(?P<new>\d{{1,3}})\b|"
    rf"{_KIND}v(?P<version>\d{{1,3}})\)?(?:\s{{0,3}}\([^()\n]{{0,40}}\))?\s{{0,4}}(?:[:–—]|-\s|\Z))",
    re.I,
)
_ABOUT_VERSIONS = re.compile(
    r"\s{0,4}(?::|\Z|(?:in|since|from|between|for|to|of|compared|against|vs\.?|rfc|v\d)\b)", re.I
)
_HAS_VERSION = re.compile(
    r"\bv[-. ]?\d|\brfc\b|\b(?:last|previous|prior|earlier|first|old|original)\b|\d->|:\s{0,9}\Z",
    re.I,
)
_TRAILER = re.compile(r"[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,15}){1,3}: \S")
_END = re.compile(r"(?:---|-- |diff -|Index: |\*\*\* |@@ | \S.{0,200}\| )")


class Notes(NamedTuple):
    """The notes of a patch."""

    base_commit: str
    change_id: str
    links: tuple[EarlierVersion, ...]
    changelog: tuple[str, ...]


def read_notes(lines: Sequence[str], version: int) -> Notes:
    """Read the lines around a diff; `version` is that of the patch."""
    base = change = ""
    for line in lines:
        if "ommit:" in line and not base and (found := _BASE_COMMIT.match(line)):
            base = found[1].lower()
        elif "hange-" in line.lower()[:20] and not change and (found := _CHANGE_ID.match(line)):
            change = found[1]
    return Notes(base, change, find_links(lines, version), find_changelog(lines, version))


def find_links(lines: Sequence[str], version: int) -> tuple[EarlierVersion, ...]:
    """Return the mails that lines name as earlier versions of a patch, each once.

    They need a label: "v1: URL", "Link to v2: URL", "Previous version: <id>", "Changes since v1
    [1]" with a footnote, or a label on the line above. Below "Since v1:" a line "Link: URL" or a
    bare Message-ID is enough. Other links are not versions.
    """
    found: dict[str, int | None] = {}
    for message_id, label in _labelled_mails(lines, version):
        if message_id and (named := _read_label(label[-MAX_LABEL:], version)):
            found.setdefault(message_id, named[0])
            if len(found) >= MAX_LINKS:
                break
    return tuple(EarlierVersion(number, message_id) for message_id, number in found.items())


def _labelled_mails(lines: Sequence[str], version: int) -> Iterator[tuple[str, str]]:
    """Yield the mails that lines link or name, with the label of each."""
    footnotes: dict[str, str] = {}
    above = ""
    for line in lines:
        at = 0
        for link in _LINK.finditer(line):
            label = line[at : link.start()]
            at = link.end()
            if footnote := _FOOTNOTE.fullmatch(label):
                label = footnotes.get(footnote[1], "")
            elif not any(map(str.isalnum, label)) or (
                _ONLY_LINK.fullmatch(label) and _is_head(above, version)
            ):
                label = above
            yield find_message_id(link[0]), label
        if not at:
            if _MESSAGE_ID.fullmatch(line.strip()) and _is_head(above, version):
                yield line.strip(), above
            before = 0
            for reference in _REFERENCE.finditer(line):
                label = line[before : reference.start()]
                before = reference.end()
                if any(map(str.isalnum, label)):
                    footnotes.setdefault(reference[1], label[-MAX_LABEL:])
        if line.strip():
            above = "" if at else line


def _read_label(label: str, version: int) -> tuple[int | None] | None:
    """Return the version in a label, in a tuple; None if it names no earlier version."""
    if not any(map(str.isalnum, label)) or _OTHER.search(label):
        return None
    versions = [*_VERSION.finditer(label)]
    if versions:
        number, is_rfc = int(versions[-1][2]), bool(versions[-1][1]) or "rfc" in label.lower()
        return (number,) if number < version or is_rfc else None
    if _EARLIER.search(label) or _RFC.match(label):
        return (None,)
    return None


def find_message_id(link: str) -> str:
    """Return the Message-ID of a link to an archive, or in angle brackets; "" without one.

    Archives that identify mail by Message-ID have it in the path or in the query.
    """
    if link.startswith("<"):
        return link[1:-1] if _MESSAGE_ID.fullmatch(link[1:-1]) else ""
    path, _, query = link.partition("://")[2].partition("/")[2].partition("?")
    if _OF_LIST.search(f"/{path}"):
        return ""
    values = [_KEY_OF_QUERY.sub("", one, count=1) for one in re.split("[/#&]", query)]
    for part in reversed([*re.split("[/#]", path), *values]):
        if "@" in part or "%40" in part:
            name = unquote(part).rstrip(_AFTER_URL).strip("<>")
            if len(name) <= MAX_ID and _MESSAGE_ID.fullmatch(name):
                return name
    return ""


def find_changelog(lines: Sequence[str], version: int) -> tuple[str, ...]:
    """Return the lines on the changes since earlier versions, with their headings."""
    return tuple(islice(_changelog(lines, version), MAX_CHANGELOG))


def _changelog(lines: Sequence[str], version: int) -> Iterator[str]:
    inside, gap = False, 0
    for line in lines:
        text = line.strip()
        if not text:
            gap += 1
            continue
        if _END.match(line) or _TRAILER.match(line):
            inside = False
        elif _is_head(line, version):
            inside = True
            if not _LINK.search(text):
                yield text[:MAX_LINE]
        elif inside and (gap == 0 or (gap == 1 and _BULLET.match(line))):
            if not _is_link_line(text):
                yield text[:MAX_LINE]
        else:
            inside = False
        gap = 0


def _is_head(line: str, version: int) -> bool:
    head = _HEAD.match(line)
    if head is None:
        return False
    if (rest := head["rest"]) is not None:
        return bool(_ABOUT_VERSIONS.match(rest) and _HAS_VERSION.search(f"{rest}"))
    named = head["version"] or head["new"]
    return named is None or int(named) <= max(version, 1)


def _is_link_line(text: str) -> bool:
    link = _LINK.search(text)
    return link is not None and len(text) - len(link[0]) < 40
