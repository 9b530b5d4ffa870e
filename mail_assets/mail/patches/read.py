"""Read the patches of a mail: inline, attached, several in one mail, and cover letters.

The rules are those of `git am` (https://git-scm.com/docs/git-mailinfo): an in-body From, Subject
and Date replace those of the mail, everything above scissors is dropped, and a line "---" ends the
commit message. Quoted patches do not count: the sender of an answer did not send them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.addresses import Address, parse_addresses
from mail_assets.mail.message.body import PatchFile
from mail_assets.mail.message.headers import decode_value
from mail_assets.mail.patches.commits import NamedShas, find_named_shas
from mail_assets.mail.patches.diff import read_diff_lines, split_lines
from mail_assets.mail.patches.notes import read_notes
from mail_assets.mail.patches.patch import (
    MAX_COMMITS,
    MAX_DIGESTS,
    MAX_FILES,
    MAX_PATCHES,
    Diff,
    MailedPatch,
)
from mail_assets.mail.patches.subjects import PatchSubject, fold_title, read_subject

#: Version of the code that reads patches; raise it when the same mail gives other patches.
PATCHES_VERSION = "12"

_NO_SHAS = NamedShas()
_QUOTED = frozenset({"quote", "attribution"})
_MBOX_LINE = re.compile(r">?From [0-9a-f]{40} \w{3} \w{3}")
_LOG_LINE = re.compile(
    r"commit [0-9a-f]{7,40}(?: \([^()\n]{1,200}\))?\s{0,9}\Z"
)  # git log, git show
_LOG_FIELD = re.compile(r"(?:Author|AuthorDate|Commit|CommitDate|Date|Merge|Notes):")
_FIELD = re.compile(r">?(From|Subject|Date):[ \t]", re.I)
_ANY_FIELD = re.compile(
    r"(?:From|Subject|Date|To|Cc|Bcc|Sender|Reply-To|Message-ID|In-Reply-To|References|"
    r"MIME-Version|Content-[\w-]{1,40}|X-[\w-]{1,60}|Sent|Organization|User-Agent|List-[\w-]{1,20}):",
    re.I,
)
# notifications of commits by programs: tip-bot, hooks of git and gitpubsub, FreeBSD, Subversion's
# mailer, CVS, GitHub
_NOTIFICATION = re.compile(
    r"\s*+(?:The following commit has been merged into \S|"
    r"This is an automated e-?mail from |"
    r"Repository: \S{1,200}\s{1,4}Updated Branches:|"
    r"The branch \S{1,200} has been updated by |"
    r"Author: [^\n]{1,200}\s{1,3}Date: [^\n]{1,200}\s{1,3}New Revision: |"
    r"CVSROOT:\s|Update of /\S|"
    r"\S{1,100} (?:closed|merged) pull request #?\d)"
)
_PUSHED = re.compile(r"\nProject: \S{1,300}\r?\nCommit: \S{1,300}\r?\nTree: ")
_MOST_TOLD = 20_000  # characters of a message above the line that names where it was pushed
#: A list of patches as of git shortlog, or the last line of a diffstat.
_OVERVIEW = re.compile(r"^[^\n(]{1,80} \(\d{1,4}\):$|^ \d{1,6} files? changed\b", re.M)
_COMMIT_SUBJECT = re.compile(r"(?:\[[^\]]{1,60}\] )?(?:git|svn|cvs|hg|bzr) commit: ")
_BETWEEN = re.compile(
    r"(?:Interdiff|Range-diff)(?: (?:against|from|v|\d)[^\n]{0,60})?:?\s{0,9}\Z", re.I
)
_MERCURIAL = "# HG changeset patch"
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_CUT_MARK = re.compile(r">8|8<|>%|%<")
_FILE_NAME = re.compile(
    r"(?:(?:rfc[-_.]?)?v(?P<before>\d{1,4})[-_.])?(?P<number>\d{4})[-_.](?P<title>[^/]{1,200})\Z",
    re.I | re.A,
)
_FILE_SUFFIX = re.compile(
    r"(?:(?:\.(?:patch|diff|txt|asc|eml|mbox)){1,4}+(?:[._-]?\d{1,3})?)?+"
    r"(?:\.(?:gz|bz2?|xz|zst))?\Z",
    re.I | re.A,
)
_FILE_VERSION = re.compile(r"(?:\A|[-_. ])v[-_.]?(\d{1,4})(?=[-_. ]|\Z)", re.I | re.A)


class PatchMail(NamedTuple):
    """The parts of a mail that are read."""

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: datetime
    in_reply_to: tuple[str, ...]
    body_text: str
    segments: Sequence[Segment]
    attached: Sequence[PatchFile] = ()


@dataclass(slots=True)
class _Piece:
    """The text of one patch: its own fields, its message with the notes, and its diff."""

    subject: str = ""
    sender: str = ""
    title: str = ""  # the first line of the message that Mercurial or git log shows
    notes: Sequence[str] = ()
    diff: Diff = field(default_factory=Diff)


def may_hold_patches(subject: str, segments: Iterable[Segment], attached: bool) -> bool:
    """Return whether a mail can have patches; most have neither a diff nor a label."""
    if attached or any(part.kind == "patch" for part in segments):
        return True
    return read_subject(subject).is_posting


class ReadPatch(NamedTuple):
    """A patch with its diff; that of a cover letter is empty."""

    patch: MailedPatch
    diff: Diff


def read_patches(mail: PatchMail) -> list[MailedPatch]:
    """Return the patches of a mail in order, or its cover letter; most mail has none or one."""
    return [one.patch for one in read_diffs(mail)]


def read_diffs(mail: PatchMail) -> list[ReadPatch]:
    """Return the patches of a mail with their diffs, in order."""
    if not may_hold_patches(mail.subject, mail.segments, bool(mail.attached)):
        return []
    named = read_subject(mail.subject)
    if _tells_of_commit(mail, named):
        return []
    found = [
        ReadPatch(_make(mail, named, piece), piece.diff)
        for piece in _split(_patch_lines(mail, named))
        if piece.diff and not _is_between_versions(named, piece)
    ]
    found += _read_attached(mail, named, {one.patch.patch_id for one in found} - {""})
    # the patches of a cover letter may be in the same mail
    has_own_row = named.part == 0 if found else not _only_answers(mail, named)
    if named.is_posting and has_own_row:
        found.insert(0, ReadPatch(_make_without_diff(mail, named), Diff()))
    capped = len(found) > MAX_PATCHES
    return [
        ReadPatch(_place(one.patch, place, capped and place == MAX_PATCHES - 1), one.diff)
        for place, one in enumerate(found[:MAX_PATCHES])
    ]


def _tells_of_commit(mail: PatchMail, named: PatchSubject) -> bool:
    """Return whether the mail is a program's notification of a commit, not a proposal."""
    return bool(
        _NOTIFICATION.match(mail.body_text)
        or _PUSHED.search(mail.body_text, 0, _MOST_TOLD)
        or (_COMMIT_SUBJECT.match(mail.subject) and not named.is_posting)
    )


def _begins_with_quote(mail: PatchMail) -> bool:
    """Return whether a mail is an answer by its text; archives of Pipermail lack the "Re:"."""
    text = mail.body_text
    seen = (part.kind for part in mail.segments if text[part.start : part.end].strip())
    return next(seen, "") in _QUOTED


def _only_answers(mail: PatchMail, named: PatchSubject) -> bool:
    """Return whether a mail without a diff is an answer whose subject lacks "Re:".

    A cover letter may quote a review of the version before; it lists its patches or files.
    """
    if _begins_with_quote(mail):
        return True
    quotes = any(part.kind == "quote" for part in mail.segments)
    if named.part == 0 and _OVERVIEW.search("\n".join(_own_lines(mail.body_text, mail.segments))):
        return False
    return quotes and bool(mail.in_reply_to)


def _place(patch: MailedPatch, place: int, is_cut: bool) -> MailedPatch:
    flags = tuple(sorted({*patch.flags, "patches_capped"})) if is_cut else patch.flags
    return replace(patch, place=place, flags=flags)


def _patch_lines(mail: PatchMail, named: PatchSubject) -> list[str]:
    """Return the lines that may have patches, without a range-diff in a cover letter."""
    lines = _own_lines(mail.body_text, mail.segments)
    if named.part != 0:
        return lines
    return lines[: next((at for at, line in enumerate(lines) if _BETWEEN.match(line)), None)]


def _is_between_versions(named: PatchSubject, piece: _Piece) -> bool:
    """Return whether a diff in a cover letter has no name: the parts are separate mails."""
    return named.part == 0 and (named.parts or 0) > 1 and not (piece.subject or piece.title)


def _own_lines(body: str, segments: Sequence[Segment]) -> list[str]:
    """Return the lines of a body that are not quoted; a quote leaves an empty line."""
    own = ["\n" if part.kind in _QUOTED else body[part.start : part.end] for part in segments]
    lines = split_lines("".join(own))
    if _SIGNED not in body:
        return lines
    return [line.removeprefix("- ") for line in lines]  # RFC 4880, 7.1


# --- pieces ---


def _split(lines: list[str]) -> Iterator[_Piece]:
    """Yield the patches of a text: an mbox has many, a mail usually one."""
    starts = [*_find_starts(lines)]
    for start, stop in zip([0, *starts], [*starts, len(lines)], strict=True):
        if start < stop:
            yield _read_piece(lines[start:stop])


def _find_starts(lines: list[str]) -> Iterator[int]:
    """Yield the lines where a further patch begins with its own fields."""
    has_text = has_diff = False
    for at, line in enumerate(lines):
        if not has_text:
            has_text = bool(line.strip())
            continue
        first = line[:1]
        if first in {"F", ">"}:
            is_mbox = _MBOX_LINE.match(line) is not None
            if is_mbox or (not lines[at - 1].strip() and _begins_fields(lines, at, has_diff)):
                yield at
                has_diff = False
        elif (first == "#" and has_diff and line.startswith(_MERCURIAL)) or (
            first == "c" and _begins_commit(lines, at)
        ):
            yield at
            has_diff = False
        elif first == "@" and line.startswith("@@ -"):
            has_diff = True


def _begins_fields(lines: list[str], at: int, has_diff: bool) -> bool:
    """Return whether the fields of a mail begin here, with From and a subject of a patch."""
    if not lines[at].startswith("From: ") or (at and _FIELD.match(lines[at - 1])):
        return False
    for line in lines[at + 1 : at + 12]:
        if line.startswith("Subject: "):
            return has_diff or read_subject(line[len("Subject: ") :]).says_patch
        if not _ANY_FIELD.match(line) and line[:1] not in {" ", "\t"}:
            return False
    return False


def _begins_commit(lines: list[str], at: int) -> bool:
    """Return whether output of `git show` begins here: fields, an indented message, a diff."""
    if not _LOG_LINE.match(lines[at]):
        return False
    if not any(line.startswith("Author: ") for line in lines[at + 1 : at + 3]):
        return False
    for below in range(at + 1, len(lines)):
        line = lines[below]
        if line.startswith("diff --"):
            return True
        if line.strip() and not (line[0] in " \t" or line == "---" or _LOG_FIELD.match(line)):
            return False
    return False


def _read_piece(lines: list[str]) -> _Piece:
    piece = _Piece()
    diff = read_diff_lines(lines)
    top = diff.start if diff else len(lines)
    at = _skip_blanks(lines, 0, top)
    if at < top and _MBOX_LINE.match(lines[at]):
        at = _read_fields(piece, lines, at + 1, top, _ANY_FIELD)
        at = _skip_blanks(lines, at, top)
    if at < top and lines[at].startswith(_MERCURIAL):
        at = _read_mercurial(piece, lines, at, top)
    elif at < top and _begins_commit(lines, at):
        _read_commit(piece, lines, at, top)
    else:
        at = _read_fields(piece, lines, at, top, _FIELD)
        for cut in [x for x in range(at, top) if _is_scissors(lines[x])][-1:]:
            _read_fields(piece, lines, _skip_blanks(lines, cut + 1, top), top, _FIELD)
    piece.diff = diff
    piece.notes = [*lines[at:top], *lines[diff.end :]] if diff else lines[at:]
    return piece


def _skip_blanks(lines: list[str], at: int, stop: int) -> int:
    while at < stop and not lines[at].strip():
        at += 1
    return at


def _read_fields(
    piece: _Piece, lines: list[str], at: int, stop: int, pattern: re.Pattern[str]
) -> int:
    """Read fields of a header; return the line below them."""
    name = ""
    while at < stop:
        line = lines[at]
        if name and line[:1] in {" ", "\t"} and line.strip():
            if name == "subject":
                piece.subject = f"{piece.subject} {line.strip()}"
            elif name == "from":
                piece.sender = f"{piece.sender} {line.strip()}"
        elif pattern.match(line):
            label, _, value = line.lstrip(">").partition(":")
            name = label.lower()
            if name == "subject":
                piece.subject = value.strip()
            elif name == "from":
                piece.sender = value.strip()
        else:
            break
        at += 1
    if piece.subject:
        piece.subject = decode_value(piece.subject.encode(errors="surrogatepass"))
    return at


def _read_mercurial(piece: _Piece, lines: list[str], at: int, stop: int) -> int:
    while at < stop and lines[at].startswith("# "):
        if lines[at].startswith("# User "):
            piece.sender = lines[at][len("# User ") :].strip()
        at += 1
    at = _skip_blanks(lines, at, stop)
    if at < stop:
        piece.title = lines[at].strip()
    return at


def _read_commit(piece: _Piece, lines: list[str], at: int, stop: int) -> None:
    while at < stop and lines[at].strip():
        if lines[at].startswith("Author: "):
            piece.sender = lines[at][len("Author: ") :].strip()
        at += 1
    at = _skip_blanks(lines, at, stop)
    if at < stop:
        piece.title = lines[at].strip()


def _is_scissors(line: str) -> bool:
    """Return whether a line is a scissors line: "-- >8 --", "8< --- cut here ---"."""
    if "-" not in line or len(line) > 200:
        return False
    marks = len(_CUT_MARK.findall(line))
    visible = len(line.strip())
    return bool(marks) and 8 <= visible < 3 * (line.count("-") + 2 * marks)


# --- rows ---


def _make(
    mail: PatchMail,
    named: PatchSubject,
    piece: _Piece,
    file: str = "",
    in_body: NamedShas = _NO_SHAS,
) -> MailedPatch:
    diff = piece.diff
    subject = piece.subject or piece.title or (_title_of_file(file) if file else "") or mail.subject
    own = named if subject == mail.subject else read_subject(subject)
    in_file = _version_of_file(file)
    version = own.version if own.version is not None else in_file
    version = version if version is not None else named.version
    numbered = own if own.part is not None or file else named
    name, email = _read_author(piece.sender) or (mail.from_name, mail.from_email)
    digests = diff.digest_lines()
    files = diff.describe()
    is_answer = subject == mail.subject and (named.is_answer or _begins_with_quote(mail))
    notes = read_notes(piece.notes, version or 1)
    flags = {
        "answer": is_answer,
        "combined": any(one.combined for one in diff.files),
        "context": diff.context,
        "files_capped": len(diff.files) > MAX_FILES,
        "lines_capped": len(digests) == MAX_DIGESTS,
        "mended": diff.mended,
        "no_label": not (named.is_patch or own.is_patch),
    }
    changed = files if len(diff.files) <= MAX_FILES else [one.describe() for one in diff.files]
    return MailedPatch(
        message_id=mail.message_id,
        place=0,
        kind="patch",
        source="attachment" if file else "body",
        file_name=file,
        subject=subject,
        title=own.title,
        title_key=fold_title(own.title),
        tags=tuple(dict.fromkeys((*own.tags, *named.tags))),
        version=1 if version is None else version,
        part=numbered.part,
        parts=numbered.parts,
        author_name=name,
        author_email=email,
        sent_at=mail.sent_at,
        in_reply_to=mail.in_reply_to,
        patch_id=diff.patch_id(),
        files=tuple(one for one in files if one.path),
        file_count=len(diff.files),
        added=sum(one.added for one in changed),
        removed=sum(one.removed for one in changed),
        line_digests=digests,
        base_commit=notes.base_commit,
        named_commits=_named_commits(piece.notes, in_body),
        change_id=notes.change_id,
        links=notes.links,
        changelog=notes.changelog,
        malformed=_malformed(diff),
        flags=tuple(flag for flag, is_set in flags.items() if is_set),
    )


def _read_author(sender: str) -> Address | None:
    found = parse_addresses([sender.encode(errors="surrogatepass")]) if sender else ()
    return found[0] if found and found[0].email else None


def _named_commits(notes: Sequence[str], in_body: NamedShas) -> tuple[str, ...]:
    """Return the ids of commits around a diff, and in the body of the mail that has it."""
    own = find_named_shas("\n".join(notes))
    found = dict.fromkeys((*own.in_urls, *in_body.in_urls, *own.words, *in_body.words))
    return tuple(found)[:MAX_COMMITS]


def _malformed(diff: Diff) -> str:
    if not diff:
        return "no diff"
    if diff.fault:
        return diff.fault
    if diff.context:
        return "a context or plain diff: git applies unified ones"
    return "a combined diff" if any(one.combined for one in diff.files) else ""


def _make_without_diff(mail: PatchMail, named: PatchSubject) -> MailedPatch:
    """Return the row of a cover letter, or of a patch without its diff."""
    [piece] = [*_split(_own_lines(mail.body_text, mail.segments))][:1] or [_Piece()]
    row = _make(mail, named, replace(piece, subject="", diff=Diff()))
    if named.part:
        return row
    return replace(row, kind="cover", malformed="")


def _read_attached(mail: PatchMail, named: PatchSubject, known: set[str]) -> list[ReadPatch]:
    """Return the patches of the attached files, except those that are also in the body."""
    found: list[ReadPatch] = []
    named_shas = find_named_shas(mail.body_text if mail.attached else "")
    in_body = NamedShas(*(shas[:MAX_COMMITS] for shas in named_shas))
    for file in mail.attached:
        pieces = [piece for piece in _split(split_lines(file.text)) if piece.diff]
        for piece in pieces or [_Piece()] * bool(file.text.strip() or file.fault):
            row = _make(mail, named, piece, file.name or "patch", in_body)
            if file.fault and piece is (pieces or [piece])[-1]:
                row = replace(row, malformed=file.fault)
            if row.patch_id not in known:
                found.append(ReadPatch(row, piece.diff))
    return _number(found)


def _number(found: list[ReadPatch]) -> list[ReadPatch]:
    """Number the files of a series by their names, as format-patch writes them."""
    numbers = [
        int(match["number"])
        if one.patch.part is None and (match := _FILE_NAME.match(one.patch.file_name))
        else None
        for one in found
    ]
    total = len(numbers) - numbers.count(None)
    if total < 2:
        return found
    return [
        one if number is None else ReadPatch(replace(one.patch, part=number, parts=total), one.diff)
        for one, number in zip(found, numbers, strict=True)
    ]


def _title_of_file(name: str) -> str:
    """Return the title in a file name of format-patch ("v3-0001-Fix-the-foo.patch"), else ""."""
    found = _FILE_NAME.match(_FILE_SUFFIX.sub("", name))
    return " ".join(re.split(r"[-_ ]+", found["title"])).strip() if found else ""


def _version_of_file(name: str) -> int | None:
    found = _FILE_VERSION.search(_FILE_SUFFIX.sub("", name)) if name else None
    return int(found[1]) if found else None
