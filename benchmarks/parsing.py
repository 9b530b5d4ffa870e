"""Measure each stage from the bytes of an archive to rows with full text, on one core.

    python -m benchmarks.parsing ARCHIVES [--dialect plain] [--no-peers]

ARCHIVES is a folder of monthly mbox files. One run measures our stages, the standard library
(`mailbox`, and `email` in compat32 mode) and other indexers of mail, over the same decompressed
mail and on the same core. Seconds are processor time, including PostgreSQL's. A stage has the time
of the fastest of PASSES passes; loading, and the index of a peer, are measured once. A stage marked
"alone" reads from memory the results of the stages before it.

A peer is a program on PATH; absent ones are reported. Each peer gets the messages as our splitter
cut them, in the form that it needs, and builds its index with its own defaults. Its message count
is read from the finished index. The time to write its input is not counted.
"""

import argparse
import hashlib
import mailbox
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from email.header import decode_header, make_header
from email.message import Message as EmailMessage
from email.utils import getaddresses, parsedate_tz
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks.pipeline import LIST, machine, open_archives, settings_for
from benchmarks.processor import Seconds, keep_to_one_core, postmaster_of, timed
from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.models import find_local_model
from mail_assets.mail.archive.compression import open_archive
from mail_assets.mail.archive.mbox import RawMessage, split_archive
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database, embedded
from mail_assets.settings.settings import Settings
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.load_messages import load_messages
from mail_assets.store.open import open_store
from mail_assets.text.chunking import chunk_body
from mail_assets.workspace import Workspace


class Peer(NamedTuple):
    """Another indexer of mail; `measure` returns its time and the messages that it indexed."""

    name: str
    program: str
    measure: Callable[[Path, Sequence[bytes]], tuple[Seconds, int]]


def notmuch(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """Measure `notmuch new` on a Maildir."""
    mail = _maildir(folder / "mail", messages)
    config = folder / "config"
    config.write_text(f"[database]\npath={mail}\n[user]\nname=a\nprimary_email=a@example.org\n")
    environ = {"NOTMUCH_CONFIG": str(config)}
    spent = _timed(["notmuch", "new", "--quiet"], environ)
    return spent, int(_run(["notmuch", "count", "--exclude=false", "*"], environ))


def mu(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """Measure `mu index` on a Maildir."""
    mail, home = _maildir(folder / "mail", messages), folder / "mu"
    _run(["mu", "init", "--quiet", f"--maildir={mail}", f"--muhome={home}"], {})
    spent = _timed(["mu", "index", "--quiet", f"--muhome={home}"], {})
    found = _run(["mu", "find", f"--muhome={home}", "--fields=i", ""], {})
    return spent, len(found.splitlines())


def public_inbox(folder: Path, messages: Sequence[bytes]) -> tuple[Seconds, int]:
    """Measure `public-inbox-index` with full text, on a repository with a commit per message."""
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
    """Return True if the peer's program is on PATH."""
    return shutil.which(peer.program) is not None


def _maildir(folder: Path, messages: Iterable[bytes]) -> Path:
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)
    for number, message in enumerate(messages):
        (folder / "cur" / f"{number:07}.bench:2,S").write_bytes(message)
    return folder


def _commits(messages: Iterable[bytes]) -> Iterable[bytes]:
    """Yield a stream for `git fast-import`, in the layout of public-inbox version 1."""
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


PASSES = 3
FIELDS = ("Message-ID", "In-Reply-To", "References", "Subject", "From", "To", "Cc", "Date")

Month = tuple[ListMonth, Path]  # the path of its decompressed archive


def main() -> None:
    """Measure; print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure parsing and other indexers of mail.")
    parser.add_argument("archives", type=Path, help="a folder of monthly mbox files")
    parser.add_argument("--dialect", default="plain")
    parser.add_argument("--no-peers", action="store_true", help="leave out the other indexers")
    arguments = parser.parse_args()
    keep_to_one_core()
    print(f"machine: {machine()}, of which one is used; Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), arguments.archives, arguments.dialect)
        months = list(decompressed(settings, Path(folder)))
        size = sum(path.stat().st_size for _, path in months)
        print(f"data:    {arguments.archives.name}, {len(months)} months, {size / 1e6:.1f} MB\n")
        print("| what | messages | seconds | messages/s | MB/s |\n|---|---|---|---|---|")
        try:
            raws = measure_stages(months, arguments.dialect, size)
            measure_load(settings, len(raws), size)
        finally:
            embedded(settings.home).remove()
        measure_library(months, size)
        for peer in () if arguments.no_peers else PEERS:
            if not is_installed(peer):
                print(f"| {peer.name} | absent: no {peer.program} on PATH | | | |")
                continue
            place = Path(folder) / peer.program
            place.mkdir()
            try:
                spent, found = peer.measure(place, [raw.raw for raw in raws])
            except subprocess.CalledProcessError as error:
                print(f"| {peer.name} | failed: {error.stderr.splitlines()[0]} | | | |")
                continue
            report(peer.name, found, size, spent)


def decompressed(settings: Settings, folder: Path) -> Iterator[Month]:
    """Yield the months of the source in order, each with a decompressed archive."""
    source = open_archives(settings)
    for month in sorted(source.versions()):
        fetched, path = folder / f"{month.month}.fetched", folder / f"{month.month}.mbox"
        source.fetch(month, fetched)
        with open_archive(fetched) as archive:
            path.write_bytes(archive.read())
        yield month, path


def measure_stages(months: Sequence[Month], dialect: str, size: int) -> list[RawMessage]:
    """Measure each stage in memory; return the messages."""

    def walk() -> int:
        return sum(1 for _, path in months for _ in split_archive(path, dialect))

    def parse() -> list[Message]:
        return [
            parse_message(raw, month=month.month, dialect=dialect)
            for month, path in months
            for raw in split_archive(path, dialect)
        ]

    count: int = fastest("split", size, walk, lambda found: found)
    messages = fastest("split and parse", size, parse, len)
    bodies = sum(len(message.body_text) for message in messages)

    def segment() -> list[list[Segment]]:
        return [segment_body(message.body_text) for message in messages]

    parts = fastest("segment, alone (MB of body text)", bodies, segment, len)
    profile = find_local_model("all-minilm-l6-v2")
    tokenizer = load_tokenizer(profile)

    def cut() -> int:
        for message, found in zip(messages, parts, strict=True):
            spans = new_text_spans(message.body_text, found)
            chunk_body(message.body_text, spans, message.subject, tokenizer, profile.sizes)
        return count

    fastest("chunk, alone (MB of body text)", bodies, cut, lambda found: found)
    return [raw for _, path in months for raw in split_archive(path, dialect)]


def measure_load(settings: Settings, count: int, size: int) -> None:
    """Measure loading: all stages up to committed rows with full text and table indexes."""
    mail_list, source = settings.lists[LIST], open_archives(settings)
    with Database(settings.home).connect("bench") as connection:
        workspace = Workspace(connection, open_store(settings.store), lambda line: None)
        months = sorted(source.versions())
        for month in months:
            fetch_archive(workspace, month, source, FetchOptions(mail_list.dialect))

        def load() -> None:
            for month in months:
                load_messages(workspace, month, mail_list.defaults)

        postmaster = postmaster_of(connection)
        report("up to rows in PostgreSQL", count, size, timed(load, postmaster)[1])
        forget_first_messages(connection)
        report("one message more on top of each month", count, size, timed(load, postmaster)[1])


def forget_first_messages(connection: psycopg.Connection) -> None:
    """Change each month as if the first message of its archive were not loaded yet."""
    with connection.transaction():
        connection.execute(
            "delete from messages m using archive_entries e where e.ordinal = 0 and"
            " (m.list, m.month, m.message_id) = (e.list, e.month, e.message_id)"
        )
        connection.execute("delete from archive_entries where ordinal = 0")
        connection.execute("update archive_entries set archive_offset = archive_offset - 1")
        connection.execute("update partitions set inputs = 'x' || inputs where asset = 'messages'")


def measure_library(months: Sequence[Month], size: int) -> None:
    """Measure the standard library: split, parse, and read what an index needs."""

    def parse() -> int:
        return sum(
            read_with_library(message) for _, path in months for message in mailbox.mbox(path)
        )

    fastest("mailbox and email, compat32", size, parse, lambda found: found)


def read_with_library(message: EmailMessage) -> int:
    """Read fields, addresses, date and body of a message; return 1, to count it."""
    for name in FIELDS:
        for value in message.get_all(name, []):
            try:
                str(make_header(decode_header(value)))
            except (LookupError, ValueError):
                continue  # unknown charset, or bytes that are invalid in it
    for name in ("From", "To", "Cc", "Reply-To"):
        getaddresses([str(value) for value in message.get_all(name, [])])
    parsedate_tz(str(message.get("Date", "")))
    for part in message.walk():
        if part.get_content_type() == "text/plain":
            payload = part.get_payload(decode=True)
            if isinstance(payload, bytes):
                payload.decode("utf-8", "replace")
            break
    return 1


def fastest(name: str, size: int, run: Callable[[], Any], count: Callable[[Any], int]) -> Any:
    """Return the result of a stage; report its fastest pass."""
    passes = [timed(run) for _ in range(PASSES)]
    result = passes[-1][0]
    report(name, count(result), size, min(spent for _, spent in passes))
    return result


def report(name: str, count: int, size: int, spent: Seconds) -> None:
    """Print a line of the table; size is in bytes."""
    seconds = spent.processor
    print(
        f"| {name} | {count} | {seconds:.2f} | {count / seconds:,.0f} "
        f"| {size / 1e6 / seconds:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
