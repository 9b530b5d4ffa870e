"""Read the subject of a patch: version, part, tags and title.

Brackets contain a list's name, a tree, a version and a part, in any order and number:
`[PATCH v3 2/5]`, `[ndctl PATCH v2]`, `[v2][PATCH]`, `[PATCHv2]`, `[RFC/PATCH 1 of 3]`,
`[net-next,v2,1/3]`. The title is what a commit would have.
"""

import re
import unicodedata
from typing import NamedTuple

from mail_assets.mail.message.subjects import MAX_SUBJECT, WARNING, is_answer
from mail_assets.mail.patches.patch import MAX_TITLE

MAX_NUMBER = 9_999  # of a version or a part; a higher number is a word

_BRACKET = re.compile(r"\[([^\[\]]{0,200})\]")
# "Re:", "RE[2]:", "Fwd:" and the like: one word of letters and a colon, before a bracket
_PREFIX = re.compile(
    r"\s*+[^\W\d_]{1,12}+(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s{0,5}+[:：]\s*+(?=\[)"
)
_INNER = re.compile(r"([^\s:\[\]]{1,40}:)\s{0,3}\[([^\[\]]{0,60}\bpatch[^\[\]]{0,60})\]", re.I)
_ANSWER = re.compile(
    r"\s*+(?:re|fwd?|aw|sv|vs|antw|wg)(?:\[\d{1,4}\]|\(\d{1,4}\))?\s{0,5}+[:：]", re.I
)
# "Ping: [PATCH] x", "*PING^2* [PATCH] x"
_PING = re.compile(
    r"\s*+\*{0,2}(?:(?:gentle|friendly|polite|weekly)\s++)?(?:ping|bump|reminder|nudge)(?![^\W\d_])"
    r"[^\[\]\n]{0,12}(?=\[)",
    re.I,
)
_PING_WORD = re.compile(r"\*{0,2}pings?[*^]{0,2}\d{0,2}", re.I | re.A)
_PART_OF = re.compile(r"(\d{1,5})\s{1,5}of\s{1,5}(\d{1,5}|[nmx?])(?![^\s,;\]])", re.I | re.A)
_NUMBERED = re.compile(
    r"(?:\b|(?<=_))(?:take|try|version|ver|rev|revision|round|attempt)[\s.#:_-]{0,3}"
    r"(\d{1,4})(?![\w./])",
    re.I | re.A,
)
_SPLIT = re.compile(r"[\s,;]+")
_VERSION = re.compile(r"-{0,2}v[-.]?(\d{1,5})(?:\.\d{1,4})?", re.I | re.A)
_PART = re.compile(r"(\d{1,5})(?:\.\d{1,3}|[a-z])?/(\d{1,5}|[nmx?]{1,2})", re.I | re.A)
# not "patches": that is the tag of a list
_PATCH_WORDS = frozenset({"patch", "patchset", "patch-set", "patchseries", "diff"})
_REPORTS = frozenset({"bug", "issue", "ticket"})  # "[Bug 12] [PATCH] x" is a tracker's comment
_STATES = frozenset({"rfc", "rft", "resend", "repost", "resent", "wip", "draft", "pull"})
# text that may follow PATCH or RFC directly: PATCHv2, PATCH-2/5, RFC.v3
_GLUED = re.compile(
    r"(patch(?:es|set)?|rfc|rft|resend|repost)[-_.:/#]{0,2}(v?\d[\w./]{0,12}|v\d{1,4}[-_.]\d{1,4}/\d{1,4})",
    re.I | re.A,
)
_GLUED_PARTS = re.compile(r"(v\d{1,5})[-_.:]?(\d{1,5}/\d{1,5})?", re.I | re.A)
# a title that begins without brackets: "PATCH: x", "PATCH v2 1/3: x", "PATCH 2/5 x"
_BARE = re.compile(
    r"(?:(?:rfc|resend)[\s/-]{1,3})?(?:patch|rfc)(?:es)?((?:[\s,-]{0,3}(?:v\d{1,3}|\d{1,4}/\d{1,4})){0,3})\s{0,3}([:-])\s{1,3}",
    re.I | re.A,
)
_LEADING_PART = re.compile(r"\(?(\d{1,4})/(\d{1,4})\)?\s{0,3}[:\s-]\s{0,3}(?=\S)", re.A)
_ENDING = re.compile(
    r"[\s,]{0,3}[(\[](?:(v\d{1,4})|(?:take|try|version|ver|rev)[\s.#]{0,3}(\d{1,4}))"
    r"(?:[\s,]{1,3}(\d{1,4}/\d{1,4}))?[)\]]\s{0,9}\Z",
    re.I | re.A,
)
_ENDING_PART = re.compile(r"[\s,]{0,3}[(\[](\d{1,4}/\d{1,4})[)\]]\s{0,9}\Z", re.A)


class PatchSubject(NamedTuple):
    """The parsed subject of a patch."""

    title: str
    tags: tuple[str, ...]  # lower case, each once, in order
    version: int | None  # None if none is written
    part: int | None
    parts: int | None
    is_patch: bool  # a bracket has PATCH, RFC, a part or a version
    says_patch: bool  # it has PATCH, or a part that does not count commits of a branch
    is_answer: bool  # it begins like an answer or a forward

    @property
    def title_key(self) -> str:
        """The title, folded for comparison."""
        return fold_title(self.title)

    @property
    def is_posting(self) -> bool:
        """True if its mail posts a patch, even without a diff: not an answer, ping or comment."""
        is_comment = self.part is None and self.tags[:1] and self.tags[0] in _REPORTS
        return self.says_patch and not (self.is_answer or is_comment or "ping" in self.tags)

    @property
    def is_cover(self) -> bool:
        """True if it is numbered as the cover letter of a series."""
        return self.part == 0


def read_subject(subject: str) -> PatchSubject:
    """Parse the subject of a patch, of a cover letter, or of an answer to one."""
    text = _plain(subject)
    label = _Label()
    answers = is_answer(text)
    at, depth = 0, 0
    while depth < 40:
        depth += 1
        at += len(text) - at - len(text[at:].lstrip())
        if warning := WARNING.match(text, at):
            at = warning.end()
        elif bracket := _BRACKET.match(text, at):
            label.read(bracket[1])
            at = bracket.end()
        elif prefix := _ANSWER.match(text, at) or (answers and _PREFIX.match(text, at)) or None:
            answers = True
            at = prefix.end()
        elif ping := _PING.match(text, at):
            label.tags.setdefault("ping")
            at = ping.end()
        else:
            break
    title = text[at:].strip()
    if inner := _INNER.match(title):  # "nvdimm: [PATCH v2] x"
        label.read(inner[2])
        title = f"{inner[1]} {title[inner.end() :].strip()}"
    title = _read_ends(title, label)
    # "[tree:branch 3/9]" is how robots name a commit with a fault
    is_posted = label.part is not None and not any(":" in tag for tag in label.tags)
    return PatchSubject(
        " ".join(title.split())[:MAX_TITLE],
        tuple(label.tags),
        label.version,
        label.part,
        label.parts,
        label.is_patch,
        label.says_patch or is_posted,
        answers,
    )


def fold_title(title: str) -> str:
    """Return letters and digits of a title, caseless; a title without any is only stripped."""
    folded = unicodedata.normalize("NFKC", title).casefold()
    return "".join(filter(str.isalnum, folded)) or folded.strip()


class _Label:
    """The meaning of the brackets of a subject so far."""

    def __init__(self) -> None:
        self.tags: dict[str, None] = {}
        self.version: int | None = None
        self.part: int | None = None
        self.parts: int | None = None
        self.is_patch = self.says_patch = False

    def read(self, words: str) -> None:
        if of := _PART_OF.search(words):
            self._set_part(of[1], of[2])
            words = f"{words[: of.start()]} {words[of.end() :]}"
        if numbered := _NUMBERED.search(words):
            self._set_version(numbered[1])
            words = f"{words[: numbered.start()]} {words[numbered.end() :]}"
        for word in _SPLIT.split(words):
            if word:
                self.read_word(word)

    def read_word(self, word: str) -> None:
        """Read a word: a version, a part, PATCH in any form, or a tag."""
        plain = word.strip(":.#()").lower()
        if version := _VERSION.fullmatch(plain):
            self._set_version(version[1])
        elif part := _PART.fullmatch(plain):
            self._set_part(part[1], part[2])
        elif _PING_WORD.fullmatch(plain):
            self.tags.setdefault("ping")
        elif plain in _PATCH_WORDS:
            self.is_patch = self.says_patch = True
        elif (glued := _GLUED.fullmatch(plain)) and self._read_glued(glued[2]):
            self.read_word(glued[1])
        elif (pair := _GLUED_PARTS.fullmatch(plain)) and pair[2]:
            self.read_word(pair[1])
            self.read_word(pair[2])
        elif len(states := re.split(r"[/+_-]", plain)) > 1 and all(
            one in _STATES or one in _PATCH_WORDS or _VERSION.fullmatch(one) for one in states
        ):
            for one in states:
                self.read_word(one)
        elif any(map(str.isalnum, plain)):
            self.is_patch = self.is_patch or plain in {"rfc", "rft"}
            self.tags.setdefault(plain)

    def _read_glued(self, rest: str) -> bool:
        """Read text directly after PATCH: v2, 2, 2/5, v2-2/5. Return whether it is one of these."""
        if version := _VERSION.fullmatch(rest):
            self._set_version(version[1])
        elif part := _PART.fullmatch(rest):
            self._set_part(part[1], part[2])
        elif pair := _GLUED_PARTS.fullmatch(rest):
            self._set_version(pair[1][1:])
            self._set_part(*pair[2].split("/"))
        elif rest.isascii() and rest.isdigit() and len(rest) < 3:
            self._set_version(rest)
        else:
            return False
        return True

    def _set_version(self, digits: str) -> None:
        if self.version is None and int(digits) <= MAX_NUMBER:
            self.version = int(digits)
            self.is_patch = True

    def _set_part(self, part: str, parts: str) -> None:
        if self.part is None and int(part) <= MAX_NUMBER:
            known = int(parts) if parts.isascii() and parts.isdigit() else None
            self.part = int(part)
            self.parts = known if known is None or known <= MAX_NUMBER else None
            self.is_patch = True


def _read_ends(title: str, label: _Label) -> str:
    """Read version and part at both ends of a title; return the title without them."""
    if bare := _BARE.match(title):
        label.is_patch = True
        label.says_patch = label.says_patch or "patch" in bare[0].lower()
        for word in _SPLIT.split(bare[1].replace("-", " ")):
            if word:
                label.read_word(word)
        title = title[bare.end() :]
    if label.is_patch and label.part is None and (part := _LEADING_PART.match(title)):
        label.read_word(f"{part[1]}/{part[2]}")
        title = title[part.end() :]
    while (
        (bracket := _BRACKET.search(title, max(0, len(title) - 60)))
        and bracket.end() == len(title)
        and re.search(r"(?i)\bpatch", bracket[1])
    ):
        label.read(bracket[1])
        title = title[: bracket.start()].rstrip()
    if label.version is None and (ending := _ENDING.search(title, max(0, len(title) - 40))):
        label.read_word(ending[1] or f"v{ending[2]}")
        if ending[3]:
            label.read_word(ending[3])
        title = title[: ending.start()]
    elif label.version is not None and (said := re.search(rf"\W+v{label.version}\Z", title, re.I)):
        title = title[: said.start()]
    elif (
        label.is_patch
        and label.part is None
        and (ending := _ENDING_PART.search(title, max(0, len(title) - 30)))
    ):
        label.read_word(ending[1])
        title = title[: ending.start()]
    return title


def _plain(subject: str) -> str:
    plain = unicodedata.normalize("NFKC", subject[:MAX_SUBJECT])
    return "".join(char if char.isprintable() else " " * char.isspace() for char in plain)
