"""What other indexers of mail cost on the same messages; used by parsing.py.

A peer is a program on PATH; one that is not there is reported as absent. Each gets the messages
as our splitter cut them, in the form that it wants, and builds its index with its own defaults.
What it reports to have indexed is asked of it afterwards. The time of writing its input is not
counted.
"""

import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processor import Seconds, timed


class Peer(NamedTuple):
    """An indexer: how it is named, found, fed, run, and asked how many messages it has."""

    name: str
    program: str
    measure: Callable[[Path, Sequence[bytes]], tuple[Seconds, int]]


def notmuch(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """`notmuch new` over a Maildir."""
    mail = _maildir(folder / "mail", messages)
    config = folder / "config"
    config.write_text(f"[database]\npath={mail}\n[user]\nname=a\nprimary_email=a@example.org\n")
    environ = {"NOTMUCH_CONFIG": str(config)}
    spent = _timed(["notmuch", "new", "--quiet"], environ)
    return spent, int(_run(["notmuch", "count", "--exclude=false", "*"], environ))


def mu(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """`mu index` over a Maildir."""
    mail, home = _maildir(folder / "mail", messages), folder / "mu"
    _run(["mu", "init", "--quiet", f"--maildir={mail}", f"--muhome={home}"], {})
    spent = _timed(["mu", "index", "--quiet", f"--muhome={home}"], {})
    found = _run(["mu", "find", f"--muhome={home}", "--fields=i", ""], {})
    return spent, len(found.splitlines())


def public_inbox(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """`public-inbox-index` with full text over a git repository, one commit a message."""
    inbox = folder / "inbox.git"
    _run(["git", "init", "--quiet", "--bare", str(inbox)], {})
    importer = ["git", "-C", str(inbox), "fast-import", "--quiet"]
    subprocess.run(importer, input=b"".join(_commits(messages)), check=True, capture_output=True)
    environ = {"HOME": str(folder)}
    spent = _timed(["public-inbox-index", "-L", "full", "--jobs=0", str(inbox)], environ)
    with sqlite3.connect(inbox / "public-inbox" / "msgmap.sqlite3") as numbers:
        return spent, int(numbers.execute("select count(*) from msgmap").fetchone()[0])


PEERS = (
    Peer("notmuch new", "notmuch", notmuch),
    Peer("mu index", "mu", mu),
    Peer("public-inbox-index -L full", "public-inbox-index", public_inbox),
)


def is_installed(peer: Peer) -> bool:
    """Tell whether the peer's program is on PATH."""
    return shutil.which(peer.program) is not None


def _maildir(folder: Path, messages: Iterable[bytes]) -> Path:
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)
    for number, message in enumerate(messages):
        (folder / "cur" / f"{number:07}.bench:2,S").write_bytes(message)
    return folder


def _commits(messages: Iterable[bytes]) -> Iterable[bytes]:
    """A stream for `git fast-import`, in the layout of public-inbox's first version."""
    for number, message in enumerate(messages):
        name = hashlib.sha1(b"%d" % number, usedforsecurity=False).hexdigest().encode()
        yield b"commit refs/heads/master\ncommitter a <a@example.org> %d +0000\n" % number
        yield b"data 0\nM 100644 inline %s/%s\n" % (name[:2], name[2:])
        yield b"data %d\n%s\n" % (len(message), message)


def _timed(command: list[str], environ: dict[str, str]) -> Seconds:
    return timed(lambda: _run(command, environ))[1]


def _run(command: list[str], environ: dict[str, str]) -> str:
    done = subprocess.run(
        command, env={**os.environ, **environ}, check=True, capture_output=True, text=True
    )
    return done.stdout
