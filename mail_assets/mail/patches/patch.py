"""The values of a mailed patch: one row of the table `patches`."""

from dataclasses import dataclass
from datetime import datetime

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

#: Flags of a patch: what was cut, and what is odd about it.
FLAGS = {
    "answer": "the subject of its mail is that of an answer",
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
    functions: tuple[str, ...] = ()  # of the heads of its hunks, each once
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
    tags: tuple[str, ...]  # words of the brackets that are no PATCH, version or part, lower case
    version: int  # 1 where none is written
    part: int | None  # 2 of "2/5"
    parts: int | None  # 5 of "2/5"
    author_name: str  # in-body From first, else From
    author_email: str
    sent_at: datetime  # of the mail
    in_reply_to: tuple[str, ...]  # of the mail; vN often answers an earlier version
    patch_id: str  # git patch-id --stable of what is applied; "" without one
    files: tuple[FileChange, ...]
    file_count: int
    added: int  # lines
    removed: int
    line_digests: tuple[int, ...]  # of the changed lines, ascending; see diff.digest_lines
    base_commit: str
    named_commits: tuple[str, ...]  # ids in the text around its diff: it is no source of them
    change_id: str
    links: tuple[EarlierVersion, ...]
    changelog: tuple[str, ...]  # lines that tell what changed since an earlier version
    malformed: str  # why git would refuse it, "" if nothing is known
    flags: tuple[str, ...]  # names from FLAGS, sorted
