"""Corpus of the yardstick: the mail of a list, and its repository with links to mail removed.

The project's own parsers read mail and patches, which are stored as JSON lines. The project's rules
that link or group patches are not used: sets.py and versions.py use only links, ids and diffs
written by authors and committers.
"""

import hashlib
import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.body import read_patch_files
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.mail.patches.commits import Commit, mail_ids
from mail_assets.mail.patches.patch import MailedPatch
from mail_assets.mail.patches.read import PatchMail, read_patches
from mail_assets.sources.git import run_git, running
from mail_assets.sources.open import open_source
from mail_assets.sources.repository import find_branch, git_folder, read_commits
from mail_assets.sources.source import Fetched, HttpOptions

#: Names of the corpus's files in the folder of a measurement.
MAIL, MESSAGES, REPOSITORY, SHAS = "mail", "mail.jsonl", "repository.git", "shas.jsonl"

_KEYED = re.compile(r"\s{0,4}[A-Za-z][A-Za-z-]{0,60}:\s")
_FOOTNOTE = re.compile(r"\s{0,8}\[\d{1,3}\]:?\s")
_NAMES_ID = re.compile(r"(?i)\s{0,4}(?:message-?id|in-reply-to|references?|discussion|link):")
_LINK = re.compile(r"\bhttps?://[^\s<>\"']{4,1000}|\bmid:[^\s<>\"']{3,500}")
_WITHHELD = "(link withheld)"


@dataclass(frozen=True, slots=True)
class Patch:
    """Fields of a patch or a cover letter (part 0) that the sets need."""

    kind: str
    title: str
    title_key: str
    version: int
    part: int | None
    parts: int | None
    author_name: str
    author_email: str
    patch_id: str
    files: list[str]
    lines: list[int]
    change_id: str
    links: list[tuple[int | None, str]]
    is_answer: bool


@dataclass(frozen=True, slots=True)
class Mail:
    """A message; `contested`: several texts have its id, and no set contains it.

    `thread` identifies the messages joined by In-Reply-To and References. `new` is the text without
    quotes, patches and signatures; `body` is the whole text.
    """

    message_id: str
    file: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    thread: str
    contested: bool
    body: str
    new: str
    patches: list[Patch]

    @property
    def sent(self) -> datetime:
        """Date of the message."""
        return datetime.fromisoformat(self.sent_at)

    @property
    def patch(self) -> Patch | None:
        """Patch or cover letter; None for an answer and for a mail with several patches."""
        own = [one for one in self.patches if not one.is_answer]
        return own[0] if len(self.patches) == len(own) == 1 else None


class History(NamedTuple):
    """Original commits since a day, and each commit's id in the withheld repository."""

    commits: list[Commit]
    withheld: dict[str, str]
    files: frozenset[str]


def read_mail(name: str, source: str, dialect: str, out: Path) -> list[Mail]:
    """Return the mail of a list in the order of its dates, and store it in `out`.

    `out`/mail has a file for each message, with the bytes of the archive.

    Raises:
        SourceError: the archives cannot be read.
    """
    kept = out / MESSAGES
    if not kept.exists():
        folder = out / MAIL
        folder.mkdir(parents=True, exist_ok=True)
        read = list(_parse(name, source, dialect, folder))
        write_lines(kept, map(asdict, _join_threads(read)))
    return [_restore(one) for one in read_lines(kept)]


def _restore(line: dict[str, Any]) -> Mail:
    patches = [Patch(**one) for one in line.pop("patches")]
    return Mail(**line, patches=patches)


def _parse(
    name: str, source: str, dialect: str, folder: Path
) -> Iterator[tuple[Message, str, list[Patch]]]:
    """Yield each message with the name of its file, month by month."""
    with tempfile.TemporaryDirectory() as scratch:
        archives = open_source(
            name, source, start="1970-01", options=HttpOptions(), cache=Path(scratch)
        )
        for month in sorted(archives.versions()):
            fetched = archives.fetch(month, Path(scratch) / "archive")
            if not isinstance(fetched, Fetched):
                continue
            for number, raw in enumerate(split_archive(fetched.path, dialect)):
                try:
                    message = parse_message(raw, month=month.month, dialect=dialect)
                except UnreadableMessageError:
                    continue
                file = f"{month.month}-{number:06}.eml"
                (folder / file).write_bytes(raw.raw)
                yield message, file, [*map(_reduce, _read_patches(message, raw.raw))]


def _read_patches(message: Message, raw: bytes) -> list[MailedPatch]:
    attached = read_patch_files(raw) if message.patch_texts else ()
    return read_patches(
        PatchMail(
            message.message_id,
            message.subject,
            message.from_name,
            message.from_email,
            message.sent_at,
            message.in_reply_to,
            message.body_text,
            segment_body(message.body_text, answers=message.answers),
            attached,
        )
    )


def _reduce(one: MailedPatch) -> Patch:
    return Patch(
        *(one.kind, one.title, one.title_key, one.version, one.part, one.parts),
        *(one.author_name, one.author_email, one.patch_id),
        sorted({path for file in one.files for path in (file.path, file.old_path) if path}),
        [*one.line_digests],
        one.change_id,
        [(link.version, link.message_id) for link in one.links],
        "answer" in one.flags,
    )


def _join_threads(read: list[tuple[Message, str, list[Patch]]]) -> Iterator[Mail]:
    """Yield the first text of each id, in the order of dates."""
    threads, contents = Groups(), dict[str, set[str]]()
    first: dict[str, tuple[Message, str, list[Patch]]] = {}
    for message, file, patches in read:
        first.setdefault(message.message_id, (message, file, patches))
        contents.setdefault(message.message_id, set()).add(message.content_hash)
        for parent in (*message.in_reply_to, *message.references):
            threads.join(message.message_id, parent)
    for message, file, patches in sorted(
        first.values(), key=lambda one: (one[0].sent_at, one[0].message_id)
    ):
        body = message.body_text
        parts = segment_body(body, message.from_name, message.from_email, answers=message.answers)
        yield Mail(
            *(message.message_id, file, message.subject, message.from_name, message.from_email),
            message.sent_at.isoformat(),
            threads.find(message.message_id),
            len(contents[message.message_id]) > 1,
            body,
            "\n\n".join(body[start:end] for start, end in new_text_spans(body, parts)),
            patches,
        )


class Groups:
    """Disjoint groups of names; the smallest name represents its group."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the representative of the group of `name`."""
        path = [name]
        while (above := self._above.get(path[-1], path[-1])) != path[-1]:
            path.append(above)
        self._above.update(dict.fromkeys(path, path[-1]))
        return path[-1]

    def join(self, one: str, other: str) -> None:
        """Merge the groups of two names."""
        first, second = sorted((self.find(one), self.find(other)))
        self._above[second] = first


def read_history(source: str, branch: str, since: datetime, out: Path) -> History:
    """Return the commits of a branch since a time, and write `out`/repository.git.

    That repository has the same history without lines and links that name mail. It borrows all
    other objects from the repository at `source`, which must not be moved.

    Raises:
        SourceError: the repository or the branch does not exist.
    """
    folder = git_folder(source)
    head = find_branch(folder, branch)
    kept = out / SHAS
    if not kept.exists():
        withheld = _withhold(folder, head, branch or "main", out / REPOSITORY)
        write_lines(kept, ({"sha": new, "original": old} for old, new in withheld.items()))
    withheld = {one["original"]: one["sha"] for one in read_lines(kept)}
    wanted = ["rev-list", "--topo-order", f"--since={int(since.timestamp())}", head]
    ids = run_git([f"--git-dir={folder}", *wanted]).decode().split()
    names = ["log", "--format=", "--name-only", "--no-renames", "--diff-merges=first-parent"]
    paths = run_git([f"--git-dir={folder}", *names, "-z", head]).decode("utf-8", "replace")
    return History([*read_commits(folder, ids)], withheld, frozenset(paths.split("\0")))


def withhold_mail(message: str) -> str:
    """Return the message of a commit without references to mail by Message-ID.

    Trailers and footnotes are deleted as lines; in running text only the link is replaced.
    """
    lines = []
    for line in message.split("\n"):
        found = [*mail_ids(line, bare=bool(_NAMES_ID.match(line)))]
        if not found:
            lines.append(line)
        elif not (_KEYED.match(line) or _FOOTNOTE.match(line) or _LINK.fullmatch(line.strip())):
            lines.append(_LINK.sub(lambda one: _WITHHELD if _names_mail(one[0]) else one[0], line))
    return "\n".join(lines)


def _names_mail(link: str) -> bool:
    return any(mail_ids(link))


def _withhold(folder: Path, head: str, branch: str, target: Path) -> dict[str, str]:
    """Write the withheld history to `target`; return old id -> new id of each commit."""
    run_git(["init", "--quiet", "--bare", str(target)])
    objects = run_git([f"--git-dir={folder}", "rev-parse", "--git-path", "objects"])
    (target / "objects/info/alternates").write_text(f"{Path(objects.decode().strip()).resolve()}\n")
    ids = run_git([f"--git-dir={folder}", "rev-list", "--reverse", "--topo-order", head])
    renamed: dict[str, str] = {}
    for old, raw in _read_objects(folder, ids):
        new = _rewrite(raw, renamed)
        renamed[old] = old if new == raw else _write_object(target, new, len(old))
    run_git([f"--git-dir={target}", "update-ref", f"refs/heads/{branch}", renamed[head]])
    run_git([f"--git-dir={target}", "symbolic-ref", "HEAD", f"refs/heads/{branch}"])
    run_git([f"--git-dir={target}", "repack", "-d", "-l", "-q"])
    return renamed


def _read_objects(folder: Path, ids: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield id and raw content of commits."""
    with running([f"--git-dir={folder}", "cat-file", "--batch"], given=[ids]) as out:
        while head := out.readline():
            sha, _, size = head.decode("ascii").split()
            yield sha, out.read(int(size))
            out.readline()


def _rewrite(raw: bytes, renamed: dict[str, str]) -> bytes:
    """Return a commit with renamed parents and no links to mail; a changed one is not signed."""
    head, _, message = raw.partition(b"\n\n")
    fields = re.split(rb"\n(?! )", head)
    for place, field in enumerate(fields):
        key, _, value = field.partition(b" ")
        if key == b"parent":
            fields[place] = b"parent " + renamed[value.decode("ascii")].encode("ascii")
    text = withhold_mail(message.decode("utf-8", "surrogateescape"))
    message = text.encode("utf-8", "surrogateescape")
    changed = b"\n".join(fields) + b"\n\n" + message
    if changed != raw:
        fields = [one for one in fields if not one.startswith((b"gpgsig", b"mergetag"))]
    return b"\n".join(fields) + b"\n\n" + message


def _write_object(target: Path, content: bytes, digits: int) -> str:
    """Write a commit as a loose object; return its id."""
    whole = b"commit %d\0%s" % (len(content), content)
    sha = (hashlib.sha1 if digits == 40 else hashlib.sha256)(whole).hexdigest()
    place = target / "objects" / sha[:2] / sha[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zlib.compress(whole, 1))
    return sha


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a file of JSON lines atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as lines:
        lines.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows)
    temporary.replace(file)
