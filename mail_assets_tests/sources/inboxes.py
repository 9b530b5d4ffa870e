"""Repositories in the layout of public-inbox, made with git alone, and by public-inbox itself."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

PUBLIC_INBOX = (
    *("public-inbox-init", "public-inbox-mda", "public-inbox-learn", "public-inbox-index"),
    "public-inbox-httpd",
)

needs_public_inbox = pytest.mark.skipif(
    any(shutil.which(program) is None for program in PUBLIC_INBOX),
    reason="public-inbox is not installed",
)

_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp(sys.argv[2], sys.argv[2:])
"""


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["git", f"--git-dir={folder}", *arguments],
        input=stdin,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def make_repository(folder: Path) -> Path:
    """Make an empty bare repository whose branch is `master`, as public-inbox does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=master", str(folder))
    return folder


def commit(folder: Path, files: Mapping[str, bytes | None], time: int = 1709632800) -> None:
    """Commit files as git fast-import does it for public-inbox; None deletes one."""
    head = subprocess.run(
        ["git", f"--git-dir={folder}", "rev-parse", "--verify", "--quiet", "master"],
        stdout=subprocess.PIPE,
        check=False,
    ).stdout.strip()
    lines = [b"commit refs/heads/master", b"committer A <a@example.org> %d +0000" % time]
    lines += [b"data 4", b"mail"]
    if head:
        lines.append(b"from " + head)
    stream = b"\n".join(lines) + b"\n"
    for path, data in files.items():
        if data is None:
            stream += f"D {path}\n".encode()
        else:
            stream += f"M 100644 inline {path}\n".encode() + b"data %d\n%s\n" % (len(data), data)
    git(folder, "fast-import", "--quiet", stdin=stream)


def add_mails(epoch: Path, mails: Sequence[bytes], time: int = 1709632800) -> None:
    """Commit messages to an epoch of format 2, one commit each."""
    for raw in mails:
        commit(epoch, {"d": None, "m": raw}, time)


class PublicInbox:
    """An inbox that public-inbox's own programs make below a folder."""

    def __init__(self, home: Path, format: int = 2) -> None:
        self.home, self.folder = home, home / "dev"
        self._run(
            *("public-inbox-init", f"-V{format}", "-L", "full", "dev", str(self.folder)),
            *("http://127.0.0.1/dev", "dev@example.org"),
        )
        config = home / ".public-inbox" / "config"
        git(home, "config", f"--file={config}", "publicinboxmda.spamcheck", "none")

    def deliver(self, raw: bytes) -> None:
        self._run("public-inbox-mda", "--no-precheck", stdin=raw)

    def remove(self, raw: bytes) -> None:
        self._run("public-inbox-learn", "rm", stdin=raw)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve the inbox by public-inbox-httpd; yield its URL.

        The socket listens before the server starts, which takes it over as systemd would hand it.
        """
        with socket.create_server(("127.0.0.1", 0)) as listener:
            start = [sys.executable, "-c", _START, str(listener.fileno()), "public-inbox-httpd"]
            server = subprocess.Popen(
                [*start, "-W0"],
                env=self.environment(),
                pass_fds=[listener.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/dev"
            finally:
                server.kill()
                server.wait()

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PI_DIR": str(self.home / ".public-inbox"),
            "ORIGINAL_RECIPIENT": "dev@example.org",
        }

    def _run(self, *command: str, stdin: bytes = b"") -> None:
        subprocess.run(
            command,
            input=stdin,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=True,
        )
