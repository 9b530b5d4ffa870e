"""The values of a mailed patch and of its diff: rows of `patches`, names of files, git's patch-id.

The patch-id is as git computes it: https://git-scm.com/docs/git-patch-id.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from mail_assets.mail.body.diffs import Hunk
from mail_assets.text.untrusted import clean_line

MAX_FILES = 2_000  # of a patch; more are counted, not kept
MAX_PATH = 1_000  # characters
MAX_FUNCTIONS = 20  # of a file, in the order of its hunks
MAX_FUNCTION = 80  # characters, as git writes
MAX_DIGESTS = 2_000  # of a patch
MAX_TITLE = 1_000  # characters
MAX_PATCHES = 200  # of a mail
MAX_LINKS = 50  # of a patch
MAX_CHANGELOG = 200  # lines of a patch
MAX_COMMITS = 20  # named by a patch
MAX_LINE = 300  # characters of a line of a changelog

#: Flags of a patch: parts that were cut, and oddities.
FLAGS = {
    "answer": "without a subject of its own in an answer (Re:, or a quote at the top)",
    "combined": "a diff against several parents (diff --cc): it has no patch-id",
    "context": "a context diff or a plain diff, which git does not apply",
    "files_capped": "more files than MAX_FILES; the first are kept, all are counted",
    "lines_capped": "more changed lines than MAX_DIGESTS; the smallest digests are kept",
    "mended": "lines that a mail program wrapped were joined again",
    "no_label": "nothing but the diff says that the message is a patch",
    "patches_capped": "the mail has more patches than MAX_PATCHES; this is the last one kept",
}


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a patch changes."""

    path: str  # after the change; of a deleted file before it
    old_path: str  # of a renamed or copied file, else ""
    change: str  # "modified", "added", "deleted", "renamed" or "copied"
    added: int  # lines
    removed: int
    functions: tuple[str, ...] = ()  # in the heads of its hunks, each once
    is_binary: bool = False


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """A link by which the author names an earlier version of a patch."""

    version: int | None  # None if the link does not say
    message_id: str


@dataclass(frozen=True, slots=True)
class MailedPatch:
    """A patch of a mail, or the cover letter of a series (part 0, no diff)."""

    message_id: str
    place: int  # among the patches of its mail, from 0
    kind: str  # "patch" or "cover"
    source: str  # "body" or "attachment"
    file_name: str  # of the attachment, else ""
    subject: str  # as written: of an in-body Subject, the attached patch, else of the mail
    title: str  # without brackets and Re:, as a commit has it
    title_key: str  # folded for comparison; see subjects.fold_title
    tags: tuple[str, ...]  # other words in brackets than PATCH, version and part, in lower case
    version: int  # 1 if none is written
    part: int | None  # 2 of "2/5"
    parts: int | None  # 5 of "2/5"
    author_name: str  # in-body From first, else From
    author_email: str
    sent_at: datetime  # of the mail
    in_reply_to: tuple[str, ...]  # of the mail; vN often answers an earlier version
    patch_id: str  # git patch-id --stable of what git applies; "" without one
    files: tuple[FileChange, ...]
    file_count: int
    added: int  # lines
    removed: int
    line_digests: tuple[int, ...]  # of the changed lines, ascending; see diff.digest_lines
    base_commit: str
    named_commits: tuple[str, ...]  # ids in the text around its diff; it is not their source
    change_id: str
    links: tuple[EarlierVersion, ...]
    changelog: tuple[str, ...]  # lines on the changes since an earlier version
    malformed: str  # reason why git would refuse it, "" if none is known
    flags: tuple[str, ...]  # names from FLAGS, sorted


NO_FILE = "/dev/null"

# the time or revision after a name, if a mail program made blanks of the tab between them
_TIME = re.compile(
    r"\s{1,9}(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s|\((?:revision \d|working copy\))|"
    r"\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}\s)"
)
_HERE = re.compile(r"\A(?:\.{1,2}/+)++")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_QUOTE = {code: f"\\{char}" for char, code in _ESCAPES.items()}


def split_names(text: str) -> tuple[str, str]:
    """Return both names of a "diff --git" line, without "a/" and "b/"."""
    if text.startswith('"') and (end := _end_of_quoted(text)):
        return _strip(unquote(text[:end])), _strip(unquote(text[end + 1 :]))
    if text.endswith('"') and (start := text.find(' "')) > 0:
        return _strip(text[:start]), _strip(unquote(text[start + 1 :]))
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " ":
        old, new = _strip(text[:middle]), _strip(text[middle + 1 :])
        if old == new:
            return old, new
    if (at := text.find(" b/")) > 0:
        return _strip(text[:at]), _strip(text[at + 1 :])
    old, _, new = text.partition(" ")
    return _strip(old), _strip(new or old)


def _end_of_quoted(text: str) -> int:
    at = 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            return at + 1
        at += 1
    return 0


def _strip(name: str) -> str:
    """Return a name without ./ and ../, and without git's prefix: a/, b/, i/, w/, c/, o/."""
    if name[:1] == "." and (here := _HERE.match(name)):
        return name[here.end() :]
    return name[2:] if name[1:2] == "/" and name[0] in "abciwo" else name


def read_name(line: str) -> str:
    """Return the name in a "---" line, without the time after it."""
    line = line.rstrip()
    if line.startswith('"') and (end := _end_of_quoted(line)):
        return unquote(line[:end])
    name = line.split("\t", 1)[0]
    if time := _TIME.search(name):
        name = name[: time.start()]
    return name.rstrip()


def plain_names(old: str, new: str) -> tuple[str, str]:
    """Return the names of a diff without git's header, as it is to be applied."""
    if old == NO_FILE or new == NO_FILE:
        name = new if old == NO_FILE else old
        name = _strip(name)
        return name, name
    if old == new:
        return _strip(old), _strip(new)
    old, new = _HERE.sub("", old, count=1), _HERE.sub("", new, count=1)
    old_rest, new_rest = old.partition("/")[2], new.partition("/")[2]
    if old_rest and old_rest == new_rest:
        return old_rest, new_rest
    new = _strip(new) if old[1:2] == "/" else new
    return new, new  # x.c.orig and x.c: one file


def last_name(line: str) -> str:
    """Return the last name of a "diff -r a b" line, "" if it ends with an option."""
    word = line.rstrip().rpartition(" ")[2]
    return "" if word.startswith("-") else _strip(word)


def unquote(name: str) -> str:
    """Return a name that git may have quoted as C does."""
    name = name.strip()
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    raw, at, inner = bytearray(), 0, name[1:-1]
    for escape in _ESCAPE.finditer(inner):
        raw += inner[at : escape.start()].encode(errors="surrogatepass")
        code = escape[1]
        raw.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 255)
        at = escape.end()
    raw += inner[at:].encode(errors="surrogatepass")
    return raw.decode(errors="replace").replace("\0", "\ufffd")


def quote(name: str) -> str:
    """Return a name as git writes it with its default core.quotePath."""
    raw = name.encode(errors="surrogatepass")
    if all(31 < byte < 127 and byte not in b'"\\' for byte in raw):
        return name
    quoted = (
        _QUOTE.get(byte) or (chr(byte) if 31 < byte < 127 else f"\\{byte:03o}") for byte in raw
    )
    return f'"{"".join(quoted)}"'


def format_name(name: str) -> str:
    """Return a name for a "---" line; git adds a tab to a name with a blank."""
    quoted = quote(name)
    return f"{quoted}\t" if " " in name else quoted


_SPACE = b" \t\r\n"
_HEX = re.compile(rb"(?:commit |From )?[0-9a-fA-F]{40}")
_HUNK_OLD = re.compile(rb"@@ -(?:\d{0,30},(\d{0,30})|(\d{0,30}))( \+)?")
_HUNK_NEW = re.compile(rb"(?:\d{0,30},(\d{0,30})|\d{0,30})")
_BINARY_LINES = (b"GIT binary patch", b"Binary files")
_MODULUS = 1 << 160


def patch_id(text: str) -> str:
    """Return the output of `git patch-id --stable` for a text, "" if there is none.

    It is the sum of the SHA-1 of each file. Blanks, line numbers and index lines do not count.
    """
    lines = text.encode(errors="surrogatepass").split(b"\n")
    if not lines[-1]:
        lines.pop()
    at, size, found = 0, 0, b""
    while at < len(lines) and not size:
        size, found, at = _read_one_id(lines, at)
    return found.hex() if size else ""


def _read_one_id(lines: list[bytes], at: int) -> tuple[int, bytes, int]:
    """Follow builtin/patch-id.c line by line: size of what was hashed, the id, the next line."""
    size = total = 0
    pieces: list[bytes] = []
    before = after = -1
    is_binary = False
    ids = b""
    while at < len(lines):
        line = lines[at].partition(b"\0")[0]
        at += 1
        if line.startswith(b"\\ ") and len(line) > 11:
            continue
        if _HEX.match(line):
            break
        if not size and not line.startswith(b"diff "):
            continue
        if before == -1:
            if line.startswith(_BINARY_LINES):
                is_binary, before = True, 0
                pieces.append(ids)
                total, pieces = _add(total, pieces), []
                continue
            if line.startswith(b"index "):
                old, dots, new = line[6:].partition(b"..")
                ids = old[:64] + new.split(b" ")[0][:64] if dots else ids
                continue
            if line.startswith(b"--- "):
                before = after = 1
            elif not line[:1].isalpha():
                break
        if is_binary:
            if line.startswith(b"diff "):
                is_binary, before = False, -1
            continue
        if before == 0 and after == 0:
            if line.startswith(b"@@ -"):
                before, after = _read_counts(line, before, after)
                continue
            if not line.startswith(b"diff "):
                break
            total, pieces = _add(total, pieces), []
            before = after = -1
        sign = line[:1]
        before -= sign in (b"-", b" ")
        after -= sign in (b"+", b" ")
        kept = line.translate(None, _SPACE)
        size += len(kept)
        pieces.append(kept)
    return size, _add(total, pieces).to_bytes(20, "little"), at


def _add(total: int, pieces: list[bytes]) -> int:
    digest = hashlib.sha1(b"".join(pieces), usedforsecurity=False).digest()
    return (total + int.from_bytes(digest, "little")) % _MODULUS


def _read_counts(line: bytes, before: int, after: int) -> tuple[int, int]:
    """Return the number of lines of each file in a hunk; like git, also for a broken head."""
    old = _HUNK_OLD.match(line)
    if old is None:
        return before, after
    before = int(old[1] or 0) if old[1] is not None else 1
    if not (old[1] or old[2]) or not old[3]:
        return before, after
    new = _HUNK_NEW.match(line, old.end())
    return before, after if new is None else int(new[1] or 0) if new[1] is not None else 1


_LEAST_LETTERS = 3  # letters of a line that gets a digest: a brace or "0," is no evidence


@dataclass(slots=True)
class FileDiff:
    """The diff of a file."""

    old_name: str = ""  # without the first folder if that is "a/"; "" if unknown
    new_name: str = ""
    extended: list[str] = field(default_factory=list)  # git's lines: modes, renames, index
    hunks: list[Hunk] = field(default_factory=list)
    binary: str = ""  # the line that reports a binary file
    combined: bool = False
    by_git: bool = False
    created: bool = False
    deleted: bool = False

    @property
    def path(self) -> str:
        """The name after the change; for a deleted file, the name before it."""
        return self.old_name if self.deleted or not self.new_name else self.new_name

    @property
    def change(self) -> str:
        """The kind of change: modified, added, deleted, renamed or copied."""
        if self.created:
            return "added"
        if self.deleted:
            return "deleted"
        if self.old_name and self.new_name and self.old_name != self.new_name:
            copied = any(line.startswith("copy ") for line in self.extended)
            return "copied" if copied else "renamed"
        return "modified"

    def changed_lines(self) -> Iterator[str]:
        """Yield the added and removed lines with their signs."""
        for hunk in self.hunks:
            for line in hunk.lines:
                if line[0] in "+-" or (self.combined and line[:2].strip(" ") in {"+", "-"}):
                    yield line

    def describe(self) -> FileChange:
        """Return the change without its lines."""
        added = removed = 0
        functions: dict[str, None] = {}
        for hunk in self.hunks:
            name = clean_line(" ".join(hunk.function.split()))[:MAX_FUNCTION]
            if name and len(functions) < MAX_FUNCTIONS:
                functions.setdefault(name)
        for line in self.changed_lines():
            is_removed = "-" in line[:2] if self.combined else line[0] == "-"
            added, removed = added + (not is_removed), removed + is_removed
        change = self.change
        old = self.old_name if change in {"renamed", "copied"} else ""
        return FileChange(
            clean_line(self.path)[:MAX_PATH],
            clean_line(old)[:MAX_PATH],
            change,
            added,
            removed,
            tuple(functions),
            bool(self.binary),
        )

    def as_git(self) -> Iterator[str]:
        """Yield the lines of the diff as git writes it."""
        old, new = self.old_name or self.new_name, self.new_name or self.old_name
        yield f"diff --git {quote(f'a/{old}')} {quote(f'b/{new}')}"
        extended = self.extended
        if not any(line.startswith(("new file", "deleted file")) for line in extended):
            if self.created:
                yield "new file mode 100644"
            elif self.deleted:
                yield "deleted file mode 100644"
        yield from extended
        if self.binary:
            yield self.binary
        elif self.hunks:
            yield f"--- {NO_FILE if self.created else format_name(f'a/{old}')}"
            yield f"+++ {NO_FILE if self.deleted else format_name(f'b/{new}')}"
            for hunk in self.hunks:
                signs = [line[0] for line in hunk.lines]
                context = signs.count(" ")
                before, after = context + signs.count("-"), context + signs.count("+")
                function = f" {hunk.function}" if hunk.function else ""
                yield (f"@@ -{hunk.old_start},{before} +{hunk.new_start},{after} @@{function}")
                yield from hunk.lines


@dataclass(slots=True)
class Diff:
    """All changes of a text."""

    files: list[FileDiff] = field(default_factory=list)
    start: int = 0  # the first line of the diff
    end: int = 0  # the line after its last
    fault: str = ""  # reason why git would refuse it
    mended: bool = False  # wrapped lines were joined
    context: bool = False  # parts of it are a context or plain diff

    def __bool__(self) -> bool:
        return bool(self.files)

    def as_git(self) -> str:
        """Return the diff as git writes it, without combined diffs."""
        return "".join(
            f"{line}\n" for file in self.files if not file.combined for line in file.as_git()
        )

    def patch_id(self) -> str:
        """Return git's stable patch-id of what is applied; "" if that is unknown."""
        if any(file.combined or not file.path for file in self.files):
            return ""
        return patch_id(self.as_git())

    def describe(self) -> tuple[FileChange, ...]:
        """Return the changed files without their lines, at most MAX_FILES."""
        return tuple(file.describe() for file in self.files[:MAX_FILES])

    def digest_lines(self) -> tuple[int, ...]:
        """Return digests of the changed lines, 32 bits with a sign, ascending, each once.

        Sign and letters count, blanks do not. Of more than MAX_DIGESTS only the smallest are kept,
        because two patches that are cut in this way still share about the same share.
        """
        return digest_lines(line for file in self.files for line in file.changed_lines())


def digest_lines(lines: Iterator[str]) -> tuple[int, ...]:
    """Return the digests of signed lines; see Diff.digest_lines."""
    found = set()
    for line in lines:
        text = "".join(line.split())
        if sum(map(str.isalpha, text)) >= _LEAST_LETTERS:
            digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4).digest()
            found.add(int.from_bytes(digest, "big", signed=True))
    return tuple(sorted(found)[:MAX_DIGESTS])
