"""Run git on repositories that are not trusted.

Nothing that a repository or the user's own configuration says is run: no hook, no pager, no text
conversion, no signature check, no helper. What git may talk to is named with each call.

[folder_lock] Let one process at a time work in a folder of a source's cache.

[cached_pairs] Files below MAIL_HOME/cache in which a source remembers what it has found out.

Each may be deleted at any time. The first line is the state of the source that the file belongs
to; each further one is a pair, separated by a tab.
"""

import base64
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from mail_assets.environment import child_environment
from mail_assets.sources.archive_file import write_whole
from mail_assets.sources.source import SourceError

#: Configuration of every call, which no file can override.
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
    "safe.directory": "*",  # lists.toml has named it; what its owner could run is switched off
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
SLOW = {"http.lowSpeedLimit": "1000", "http.lowSpeedTime": "60"}  # bytes/s; seconds


class Blob(NamedTuple):
    """An object of a repository; its bytes are cut at a limit."""

    id: str
    data: bytes


def fetch_repository(url: str, folder: Path, auth: tuple[str, str] | None) -> None:
    """Make the bare repository `folder` a mirror of that at `url`, http(s):// or a path.

    A user and password go to the server of `url` only: then redirects are not followed.

    Raises:
        SourceError: git refuses, or there is no git.
    """
    scheme = urlsplit(url).scheme or "file"
    config = {**SLOW, f"protocol.{scheme}.allow": "always"}
    if auth:
        pair = base64.b64encode(":".join(auth).encode()).decode()
        config[f"http.{url}.extraHeader"] = f"Authorization: Basic {pair}"
        config["http.followRedirects"] = "false"
    if not (folder / "HEAD").exists():
        # a clone knows the name of the branch; it appears under its name when it is whole
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            clone = Path(place) / "clone.git"
            run_git(["clone", "--quiet", "--mirror", "--", url, str(clone)], config)
            clone.replace(folder)
        return
    fetch = ["fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head"]
    run_git([f"--git-dir={folder}", *fetch, "--", url, "+refs/heads/*:refs/heads/*"], config)


def head_commit(folder: Path) -> str:
    """Return the id of the newest commit; "" for a repository without one."""
    command = [f"--git-dir={folder}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
    try:
        return run_git(command).decode().strip()
    except SourceError:
        run_git([f"--git-dir={folder}", "rev-parse", "--git-dir"])  # is it a repository at all?
        return ""


def is_ancestor(folder: Path, old: str, new: str) -> bool:
    """Say whether the history of the commit `new` holds the commit `old`."""
    command = [f"--git-dir={folder}", "merge-base", "--is-ancestor", "--end-of-options", old, new]
    try:
        run_git(command)
    except SourceError:  # it does not, or `old` is gone
        return False
    return True


def log_lines(folder: Path, commit: str) -> Iterator[str]:
    """Yield the history of a commit, oldest first, as git writes it.

    A line is "@" and the committer's time in seconds, or that of a changed file:
    ":mode mode id id letter<tab>path".
    """
    log = ["log", "--reverse", "--first-parent", "-m", "--root", "--raw", "--no-abbrev", "-r"]
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-notes"]
    command = [f"--git-dir={folder}", *log, *plain, "--format=@%ct", "--end-of-options", commit]
    with _running(command, {}, {}) as out:
        for line in out:
            yield line.decode("utf-8", "replace").rstrip("\n")


def read_blobs(folders: Sequence[Path], ids: Iterable[str], limit: int) -> Iterator[Blob]:
    """Yield objects of several repositories in the order of their ids, `limit` bytes of each.

    Raises:
        SourceError: none of the repositories has one of them.
    """
    *others, last = folders
    # quoted as git reads it (gitrepository-layout), for a path may have a colon
    objects = (
        str(folder / "objects").replace("\\", "\\\\").replace('"', '\\"') for folder in others
    )
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(f'"{path}"' for path in objects)}
    with tempfile.TemporaryFile() as wanted:
        wanted.writelines(f"{one}\n".encode() for one in ids)
        wanted.seek(0)
        command = [f"--git-dir={last}", "cat-file", "--batch", "--buffer"]
        with _running(command, {}, variables, wanted) as out:
            while head := out.readline():
                yield _read_blob(head, out, limit)


def run_git(arguments: Sequence[str], config: dict[str, str] | None = None) -> bytes:
    """Return what a command of git writes.

    Raises:
        SourceError: it fails, with git's own words; or there is no git.
    """
    with _running(arguments, config or {}, {}) as out:
        return out.read()


@contextmanager
def _running(
    arguments: Sequence[str],
    config: dict[str, str],
    variables: dict[str, str],
    stdin: IO[bytes] | int = subprocess.DEVNULL,
) -> Iterator[IO[bytes]]:
    """Yield what git writes; raise what it says where it fails."""
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *arguments],
                env=_environment(config) | variables,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except FileNotFoundError as error:
            raise SourceError("there is no git on this machine; install it") from error
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


def _environment(config: dict[str, str]) -> dict[str, str]:
    environment = child_environment(without="GIT_")
    entries = [*_CONFIG.items(), *config.items()]
    environment |= _ENVIRONMENT | {"GIT_CONFIG_COUNT": str(len(entries))}
    for number, (key, value) in enumerate(entries):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def _read_blob(head: bytes, out: IO[bytes], limit: int) -> Blob:
    """Read one answer of `git cat-file --batch`: "id type size", the bytes, and a line end."""
    one, _, rest = head.decode("ascii", "replace").strip().partition(" ")
    kind, _, size = rest.partition(" ")
    if kind != "blob":
        raise SourceError(f"the repository lacks the object {one}; repair it with `git fsck`")
    left = int(size)
    data = out.read(min(left, limit))
    left -= len(data)
    while left and (skipped := out.read(min(left, 1 << 20))):
        left -= len(skipped)
    if left or out.read(1) != b"\n":
        raise SourceError(f"git ended within the object {one}; try again", retryable=True)
    return Blob(one, data)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Wait until nobody else holds the folder, then keep others waiting; it is made if missing.

    The lock ends with the process that holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


Pairs = list[tuple[str, str]]


def read_pairs(path: Path) -> tuple[str, Pairs]:
    """Return the state and the pairs; ("", []) where there is no such file, or no whole one."""
    try:
        with path.open(encoding="ascii", newline="\n") as file:
            state = file.readline().rstrip("\n")
            pairs = [line.rstrip("\n").split("\t") for line in file]
            return state, [(first, second) for first, second in pairs]
    except (FileNotFoundError, ValueError):  # a damaged one is as good as a missing one
        return "", []


def write_pairs(path: Path, state: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Replace the file; a reader sees the old one or the new one."""
    with write_whole(path) as file:
        file.write(f"{state}\n".encode("ascii"))
        file.writelines(f"{first}\t{second}\n".encode("ascii") for first, second in pairs)
