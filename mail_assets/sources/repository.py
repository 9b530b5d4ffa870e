"""List the commits of a git repository by month, and read their contents as a stream.

git runs as in git.py: the repository is not trusted, and neither its hooks nor programs named in
its configuration are run. A repository at a URL or in a bundle (git-bundle) is mirrored below
MAIL_HOME/cache; one in a folder is only read. The commits by month are cached with the id of the
newest commit, so that only new commits are walked.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple

from mail_assets.http.reach import Reach
from mail_assets.mail.message.subjects import MAX_SUBJECT
from mail_assets.mail.patches.commits import Commit
from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.patch import patch_id
from mail_assets.sources.git import fetch_repository, find_commit, is_ancestor, run_git, running
from mail_assets.sources.message_source import hold_folder, read_pairs, write_pairs
from mail_assets.sources.source import HttpOptions, SourceError
from mail_assets.sources.urls import url_scheme
from mail_assets.text.untrusted import clean_line, clean_name

MAX_DIFF = 8 << 20  # bytes of a commit's diff; a longer one has no patch-id
MAX_BODY = 256 << 10  # bytes of a commit's message
MAX_NAME = 500  # characters of a name or an address
_MAX_LINE = 1 << 20  # bytes per read of a line

# No line of a diff begins with this byte. NUL ends each field; a commit's message has none.
_MARK = b"\x01"
_FIELDS = ("%H", "%P", "%an", "%ae", "%at", "%cn", "%ce", "%ct", "%B")
_FORMAT = f"--format=%x01{'%x00'.join(_FIELDS)}%x00"
_LOG = (
    *("log", "--no-walk=unsorted", "--stdin", _FORMAT, "--encoding=UTF-8"),
    *("-p", "--diff-merges=off", "--root", "--full-index", "-U3", "--inter-hunk-context=0"),
    *("--diff-algorithm=myers", "--indent-heuristic", "-M50%", "--src-prefix=a/"),
    *("--dst-prefix=b/", "--submodule=short", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-notes", "--no-relative", "--ws-error-highlight=none", "--no-show-signature"),
)
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 4_102_444_799  # the end of 2099


class History(NamedTuple):
    """Commits of a branch: the newest one, and the ids of each month, oldest first.

    `rewritten`: the formerly newest commit, if it is no longer on the branch, else "".
    """

    head: str
    months: dict[str, list[str]]
    rewritten: str

    def version(self, month: str) -> str:
        """Return a digest over the commits of a month, "" if there are none."""
        ids = self.months.get(month)
        return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32] if ids else ""


class CommitSource:
    """Commits of one branch of a repository: a folder, a bundle or an http(s):// URL.

    An empty `branch` means HEAD. `cache` is the folder for mirrors and lists of commits.
    """

    def __init__(
        self, name: str, source: str, branch: str, cache: Path, options: HttpOptions
    ) -> None:
        self.name, self.source, self.branch = name, source, branch
        key = hashlib.sha256(f"{source} {branch}".encode()).hexdigest()[:8]
        self._cache = cache / "repositories" / f"{name}-{key}"
        self._options = options
        self._is_remote = url_scheme(source) != "file"
        self._is_folder = not (self._is_remote or Path(source).is_file())
        self._history: History | None = None
        self._folder: Path | None = None

    @property
    def is_mirrored(self) -> bool:
        """True for a repository on this machine, which needs no clone."""
        return self._is_folder or (self._mirror / "HEAD").exists()

    def history(self) -> History:
        """Fetch new commits, at most once, and return the commits of the branch.

        Raises:
            SourceError: the repository, the branch or the server cannot be found.
        """
        if self._history is None:
            try:
                with hold_folder(self._cache):
                    self._history = self._read_history(self.folder())
            except SourceError as error:
                raise self._error(str(error), retryable=error.retryable) from error
            except OSError as error:
                what = f"{error.filename or self._cache}: {error.strerror}"
                raise self._error(what, retryable=True) from error
        return self._history

    def read(self, ids: Iterable[str]) -> Iterator[Commit]:
        """Yield the commits of these ids in their order; memory holds one commit.

        Raises:
            SourceError: git fails, or a commit does not exist.
        """
        try:
            yield from read_commits(self.folder(), ids)
        except SourceError as error:
            raise self._error(str(error), retryable=error.retryable) from error

    def folder(self) -> Path:
        """Return the git directory of the folder, or update the mirror and return it.

        Raises:
            SourceError: it cannot be found or fetched.
        """
        if self._folder is None:
            self._folder = git_folder(self.source) if self._is_folder else self._update_mirror()
        return self._folder

    @property
    def _mirror(self) -> Path:
        return self._cache / "mirror.git"

    def _update_mirror(self) -> Path:
        from mail_assets.sources.http_reader import password_for, pin_address

        auth, address = None, ""
        if self._is_remote:
            auth = password_for(self.source, self.source, self._options)
            address = pin_address(self.source, Reach(self.source))
        fetch_repository(self.source, self._mirror, auth, address)
        return self._mirror

    def _read_history(self, folder: Path) -> History:
        head = find_branch(folder, self.branch)
        path = self._cache / "commits"
        known, pairs = read_pairs(path)
        rewritten = ""
        if known != head:
            if known and not is_ancestor(folder, known, head):
                known, pairs, rewritten = "", [], known
            span = f"{known}..{head}" if known else head
            pairs = [*pairs, *_walk(folder, span)]
            write_pairs(path, head, pairs)
        months: defaultdict[str, list[str]] = defaultdict(list)
        for month, sha in pairs:
            months[month].append(sha)
        return History(head, dict(months), rewritten)

    def _error(self, what: str, *, retryable: bool = False) -> SourceError:
        return SourceError(f"repository {self.name} ({self.source}): {what}", retryable=retryable)


class GitFolder:
    """A repository on this machine; looks up commits by their ids."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def around(cls, place: Path) -> "GitFolder | None":
        """Return the repository whose checkout contains a folder, None if there is none."""
        try:
            return cls(git_folder(str(place)))
        except SourceError:
            return None

    @classmethod
    def kept(cls, name: str, source: str, branch: str, cache: Path) -> "GitFolder | None":
        """Return a repository of lists.toml, None if not on this machine; fetch nothing."""
        one = CommitSource(name, source, branch, cache, HttpOptions())
        if not one.is_mirrored:
            return None
        return cls.around(Path(source)) if one._is_folder else cls(one._mirror)

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Return the given, perhaps abbreviated ids of commits, mapped to their full ids.

        Unknown and ambiguous ids are left out. One git process looks up all of them.

        Raises:
            SourceError: git fails.
        """
        command = [f"--git-dir={self.folder}", "cat-file", "--batch-check=%(objectname)"]
        with running(command, given=(f"{name}^{{commit}}\n".encode() for name in names)) as out:
            answers = out.read().decode().splitlines()
        pairs = zip(names, answers, strict=True)
        return {name: answer for name, answer in pairs if _SHA.fullmatch(answer)}

    def read(self, ids: Iterable[str]) -> Iterator[Commit]:
        """Yield the commits of these ids. See read_commits."""
        return read_commits(self.folder, ids)


def git_folder(path: str) -> Path:
    """Return the git directory of a repository or of any folder in its work tree.

    Raises:
        SourceError: there is none.
    """
    if not Path(path).is_dir():
        raise SourceError(f"there is no folder or bundle {path}; clone the repository there")
    try:
        out = run_git(["-C", path, "rev-parse", "--absolute-git-dir"])
    except SourceError as error:
        raise SourceError(f"{path} is not a git repository: {error}") from error
    return Path(out.decode("utf-8", "surrogateescape").rstrip("\n"))


def find_branch(folder: Path, branch: str) -> str:
    """Return the id of the newest commit of a branch; an empty `branch` means HEAD.

    Raises:
        SourceError: there is no such branch, or it has no commit.
    """
    if commit := find_commit(folder, f"refs/heads/{branch}" if branch else "HEAD"):
        return commit
    what = f"there is no branch {branch!r}" if branch else "HEAD names no commit"
    raise SourceError(f"{what}; name an existing branch in lists.toml")


def _walk(folder: Path, span: str) -> Iterator[tuple[str, str]]:
    """Yield month (of the committer's date, in UTC) and id of each commit, oldest first."""
    command = [f"--git-dir={folder}", "log", "--reverse", "--topo-order", "--no-show-signature"]
    with running([*command, "--no-notes", "--format=%ct %H", "--end-of-options", span]) as out:
        for line in out:
            seconds, _, sha = line.decode("ascii").strip().partition(" ")
            yield f"{_moment(seconds):%Y-%m}", sha


def read_commits(folder: Path, ids: Iterable[str]) -> Iterator[Commit]:
    """Yield the commits of these ids, in their order, from one git process.

    A merge has no diff. A diff longer than MAX_DIFF is cut, and its commit is flagged.

    Raises:
        SourceError: git fails, or a commit does not exist.
    """
    wanted = [*dict.fromkeys(ids)]
    if not wanted:
        return
    names = (f"{one}\n".encode("ascii") for one in wanted)
    with running([f"--git-dir={folder}", *_LOG], given=names) as out:
        line = out.readline(_MAX_LINE)
        while line:
            if not line.startswith(_MARK):
                raise SourceError("the output of git log has an unknown format; update git")
            head, line = _read_head(out, line)
            diff, is_cut, line = _read_patch(out, line)
            yield _build(head, diff, is_cut)


def _read_head(out: IO[bytes], line: bytes) -> tuple[list[bytes], bytes]:
    parts, ends = [line[1:]], line.count(b"\x00")
    while ends < len(_FIELDS) and (line := out.readline(_MAX_LINE)):
        parts.append(line)
        ends += line.count(b"\x00")
    return b"".join(parts).split(b"\x00"), out.readline(_MAX_LINE)


def _read_patch(out: IO[bytes], line: bytes) -> tuple[bytes, bool, bytes]:
    """Read the diff of a commit; return it, whether it was cut, and the line after it."""
    lines, size = [], 0
    while line and not line.startswith(_MARK):
        size += len(line)
        if size <= MAX_DIFF:
            lines.append(line)
        was_open = not line.endswith(b"\n")
        line = out.readline(_MAX_LINE)
        while was_open and line:  # the rest of a very long line may begin with any byte
            size += len(line)
            if size <= MAX_DIFF:
                lines.append(line)
            was_open = not line.endswith(b"\n")
            line = out.readline(_MAX_LINE)
    return b"".join(lines), size > MAX_DIFF, line


def _build(head: Sequence[bytes], diff: bytes, is_cut: bool) -> Commit:
    sha, parents, author, author_email, authored, committer, email, committed, message = head[:9]
    flags = []
    names = [clean_name(_text(x))[:MAX_NAME] for x in (author, author_email, committer, email)]
    text = _text(message[:MAX_BODY]).strip("\n")
    if len(message) > MAX_BODY:
        flags.append("message_capped")
    if any("\ufffd" in x for x in (*names, text)):
        flags.append("bytes_repaired")
    subject, _, body = text.partition("\n\n")
    shown = diff.decode("utf-8", "replace")
    read = read_diff(shown)
    if is_cut:
        flags.append("diff_capped")
    return Commit(
        sha=sha.decode("ascii"),
        parents=tuple(parents.decode("ascii").split()),
        author_name=names[0],
        author_email=names[1],
        authored_at=_moment(authored),
        committer_name=names[2],
        committer_email=names[3],
        committed_at=_moment(committed),
        subject=clean_line(" ".join(subject.split()))[:MAX_SUBJECT],
        body=body.strip("\n"),
        files=read.describe(),
        patch_id="" if is_cut else patch_id(shown),
        lines=read.digest_lines(),
        flags=tuple(sorted(flags)),
    )


def _text(data: bytes) -> str:
    """Decode a field as UTF-8, else as windows-1252, without NUL."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    return text.replace("\x00", "\ufffd").replace("\r\n", "\n")


def _moment(seconds: bytes | str) -> datetime:
    """Return a time of git, limited to the years 1970 to 2099."""
    try:
        number = int(seconds)
    except ValueError:  # an old commit may have a damaged date
        return _FIRST
    return datetime.fromtimestamp(min(max(number, 0), _LAST_SECOND), UTC)
