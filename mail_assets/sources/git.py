"""Read a public-inbox in git, and run git safely on repositories that are not trusted.

A public-inbox is one repository (format 1), or one for each epoch (format 2). In format 2 each
commit has one file: `m` is a message that arrived, `d` is a message to remove, with the same bytes.
Format 1 has a file for each message, named by 2/38 digits of the SHA-1 of its Message-ID.
(public-inbox-v2-format(5), public-inbox-v1-format(5))

A key is the id of a blob. The events of a repository's commits are cached with the id of the newest
commit, so that only new commits are walked and only new messages are read.

git runs no program that a repository or the user's configuration names: no hook, pager, text
conversion, signature check or helper. Each call names the protocols that git may use.
"""

import base64
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from mail_assets.environment import child_environment
from mail_assets.files import make_private_folder
from mail_assets.mail.archive.mbox import MAX_MESSAGE
from mail_assets.sources.message_source import (
    Arrival,
    Pairs,
    find_months,
    format_message,
    read_pairs,
    write_pairs,
)
from mail_assets.sources.source import SourceError

#: Configuration of every call; it overrides all files.
_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "credential.helper": "",
    "diff.external": "",
    "gc.autoDetach": "false",
    "log.mailmap": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.directory": "*",  # safe: whatever the owner of a repository could run is switched off
    "transfer.fsckObjects": "false",  # old mail has commits that fsck refuses
}
_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
#: A transfer is aborted if it stays below 1000 bytes/s for 60 s.
SLOW = {"http.lowSpeedLimit": "1000", "http.lowSpeedTime": "60"}


MAX_READ = MAX_MESSAGE + (1 << 20)  # bytes; the parser cuts a longer message and flags it
MAX_TIME = 1 << 32  # seconds

_FORMAT_1 = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_CHANGE = re.compile(
    r":[0-7]{6} (?P<mode>[0-7]{6}) (?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) "
    r"[A-Z]\t(?P<path>.{1,100})"
)
_EPOCH_FOLDER = re.compile(r"([0-9]{1,6})\.git")
_REMOVED = "removed"
_NO_FILE = "000000"


class Blob(NamedTuple):
    """An object of a repository; its data may be truncated."""

    id: str
    data: bytes


def find_repositories(folder: Path) -> list[Path]:
    """Return the repositories of the public-inbox in a folder, oldest first; [] if none."""
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return [folder]
    epochs = {}
    for place in (folder / "git").glob("*.git"):
        number = _EPOCH_FOLDER.fullmatch(place.name)
        if number and (place / "objects").is_dir():
            epochs[int(number[1])] = place
    return [epochs[number] for number in sorted(epochs)]


class GitInbox:
    """The messages of the public-inbox in `folder`; `cache` is a folder for its files."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._times: dict[str, int] = {}
        self._by_arrival: frozenset[str] = frozenset()
        self._lacking: list[str] = []

    @property
    def remarks(self) -> dict[str, list[str]]:
        """Messages of the last listing that the repository has lost. See Messages."""
        times = (datetime.fromtimestamp(self._times[id], UTC) for id in self._lacking)
        names = [f"{id} of {time:%Y-%m}" for id, time in zip(self._lacking, times, strict=True)]
        return {"messages whose object is lost; repair the repository with `git fsck`": names}

    def months(self) -> Pairs:
        """Return (month, key) of every message, in the order of their commits. See Messages."""
        self._times = {}
        for repository in self._repositories():
            for id, what in self._events(repository):
                self._times.pop(id, None)
                if what != _REMOVED:
                    self._times[id] = min(int(what), MAX_TIME)
        self._lacking = []
        found = find_months(
            [*self._times], lambda ids: self._read(ids, self._lacking), self._cache / "months"
        )
        self._by_arrival = found.by_arrival
        return found.pairs

    def entries(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield the messages of these keys as mboxrd. See Messages."""
        for message in self._read(keys):
            arrived = message.arrived if message.key in self._by_arrival else None
            yield format_message(message.raw, arrived)

    def _repositories(self) -> list[Path]:
        if found := find_repositories(self._folder):
            return found
        raise SourceError(
            f"{self._folder.absolute()} is not a public-inbox: it is neither a bare git repository"
            " nor a folder with git/0.git"
        )

    def _events(self, repository: Path) -> Pairs:
        newest = find_commit(repository, "HEAD")
        path = self._cache / f"events-{repository.stem}"
        known, events = read_pairs(path)
        if newest == known:
            return events
        if not newest:
            return []
        if not known or not is_ancestor(repository, known, newest):
            known, events = "", []  # its history was rewritten, as `public-inbox-purge` does
        events += _read_events(log_lines(repository, f"{known}..{newest}" if known else newest))
        write_pairs(path, newest, events)
        return events

    def _read(self, ids: Iterable[str], lacking: list[str] | None = None) -> Iterator[Arrival]:
        for blob in read_blobs(self._repositories(), ids, MAX_READ, lacking):
            time = datetime.fromtimestamp(self._times[blob.id], UTC)
            yield Arrival(blob.id, blob.data, time)


def _read_events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    time = "0"
    for line in lines:
        if line.startswith("@"):
            time = line[1:]
            continue
        change = _CHANGE.fullmatch(line)
        if change is None or not (change["path"] in "md" or _FORMAT_1.fullmatch(change["path"])):
            continue  # a file of neither format, such as a README
        gone = change["mode"] == _NO_FILE
        if change["path"] == "d" and not gone:
            yield change["new"], _REMOVED
        elif change["path"] == "m" and not gone:
            yield change["new"], time
        elif change["path"] not in "md":
            yield change["old"], _REMOVED
            if not gone:
                yield change["new"], time


def fetch_repository(
    url: str, folder: Path, auth: tuple[str, str] | None = None, address: str = ""
) -> None:
    """Create or update the bare repository `folder` as a mirror of `url`, http(s):// or a path.

    The user and password are sent to the server of `url` only. Redirects are not followed.
    `address` is "host:port:address"; git connects to it without looking up the host again.

    Raises:
        SourceError: git fails, or is not installed.
    """
    scheme = urlsplit(url).scheme or "file"
    config = {**SLOW, f"protocol.{scheme}.allow": "always", "http.followRedirects": "false"}
    if address:
        config["http.curloptResolve"] = address
    if auth:
        pair = base64.b64encode(":".join(auth).encode()).decode()
        config[f"http.{url}.extraHeader"] = f"Authorization: Basic {pair}"
    if not (folder / "HEAD").exists():
        # clone, not fetch: it sets HEAD; the folder gets its name when the clone is complete
        make_private_folder(folder.parent)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            clone = Path(place) / "clone.git"
            run_git(["clone", "--quiet", "--mirror", "--", url, str(clone)], config)
            clone.replace(folder)
        return
    fetch = ["fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head"]
    run_git([f"--git-dir={folder}", *fetch, "--", url, "+refs/heads/*:refs/heads/*"], config)


def find_commit(folder: Path, name: str) -> str:
    """Return the id of the commit that a name such as HEAD refers to, "" if there is none."""
    command = [f"--git-dir={folder}", "rev-parse", "--verify", "--quiet", "--end-of-options"]
    try:
        return run_git([*command, f"{name}^{{commit}}"]).decode().strip()
    except SourceError:
        run_git([f"--git-dir={folder}", "rev-parse", "--git-dir"])  # raises if not a repository
        return ""


def is_ancestor(folder: Path, old: str, new: str) -> bool:
    """Return whether the commit `old` is in the history of the commit `new`."""
    command = [f"--git-dir={folder}", "merge-base", "--is-ancestor", "--end-of-options", old, new]
    try:
        run_git(command)
    except SourceError:  # it is not, or `old` does not exist
        return False
    return True


def log_lines(folder: Path, commit: str) -> Iterator[str]:
    """Yield the history of a commit, oldest first, as lines of git log.

    A line is "@" and the committer's time in seconds, or a changed file:
    ":mode mode id id letter<tab>path".
    """
    log = ["log", "--reverse", "--first-parent", "-m", "--root", "--raw", "--no-abbrev", "-r"]
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-notes"]
    command = [f"--git-dir={folder}", *log, *plain, "--format=@%ct", "--end-of-options", commit]
    with running(command) as out:
        for line in out:
            yield line.decode("utf-8", "replace").rstrip("\n")


def read_blobs(
    folders: Sequence[Path], ids: Iterable[str], limit: int, lacking: list[str] | None = None
) -> Iterator[Blob]:
    """Yield objects of several repositories in the order of `ids`, at most `limit` bytes of each.

    The ids of objects that are in none of the repositories are added to `lacking`.

    Raises:
        SourceError: such an object, without `lacking`; git fails.
    """
    *others, last = folders
    # quoted for git (gitrepository-layout): a path may have a colon
    objects = (
        str(folder / "objects").replace("\\", "\\\\").replace('"', '\\"') for folder in others
    )
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(f'"{path}"' for path in objects)}
    command = [f"--git-dir={last}", "cat-file", "--batch", "--buffer"]
    wanted = (f"{one}\n".encode() for one in ids)
    with running(command, variables=variables, given=wanted) as out:
        while head := out.readline():
            one, _, answer = head.decode("ascii", "replace").strip().partition(" ")
            if answer.startswith("blob "):
                yield _read_blob(one, int(answer.removeprefix("blob ")), out, limit)
            elif lacking is None:
                raise SourceError(
                    f"the repository lacks the object {one}; repair it with `git fsck`"
                )
            else:
                lacking.append(one)


def run_git(arguments: Sequence[str], config: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Return the output of a git command.

    Raises:
        SourceError: the command fails (with git's message), or git is not installed.
    """
    with running(arguments, config) as out:
        return out.read()


@contextmanager
def running(
    arguments: Sequence[str],
    config: Mapping[str, str] = MappingProxyType({}),
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    given: Iterable[bytes] = (),
) -> Iterator[IO[bytes]]:
    """Run a git command and yield its output as a stream; an exception in the block kills it.

    The input `given` is written to a file first, because git may answer before it has read all of
    it.

    Raises:
        SourceError: the command fails (with git's message), or git is not installed.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as complaints:
        source.writelines(given)
        source.seek(0)
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *arguments],
                env={**_environment(config), **variables},
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=complaints,
                umask=0o077,
            )
        except FileNotFoundError as error:
            raise SourceError("git is not installed; install it") from error
        assert process.stdout is not None
        with process:
            try:
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            complaints.seek(0)
            said = " ".join(complaints.read(2_000).decode("utf-8", "replace").split())
            raise SourceError(f"git: {said or f'exit {process.returncode}'}", retryable=True)


def _environment(config: Mapping[str, str]) -> dict[str, str]:
    environment = child_environment(without="GIT_")
    entries = [*_CONFIG.items(), *config.items()]
    environment |= _ENVIRONMENT | {"GIT_CONFIG_COUNT": str(len(entries))}
    for number, (key, value) in enumerate(entries):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def _read_blob(id: str, left: int, out: IO[bytes], limit: int) -> Blob:
    """Read the `left` bytes of an object and the line end below it."""
    data = out.read(min(left, limit))
    left -= len(data)
    while left and (skipped := out.read(min(left, 1 << 20))):
        left -= len(skipped)
    if left or out.read(1) != b"\n":
        raise SourceError(f"git ended within the object {id}; try again", retryable=True)
    return Blob(id, data)
