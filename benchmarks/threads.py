"""Measure the building of threads on a large invented corpus, whole and after changes.

    python -m benchmarks.threads [MESSAGES]

The program fills a temporary PostgreSQL server with messages of 8 lists over 25 years. Replies name
up to 20 ancestors; one in 50 answers a message of another list. It prints seconds and the peak
memory of this process, without PostgreSQL; then the seconds of the checks.
"""

import argparse
import hashlib
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.steps.build_threads import build_threads
from mail_assets.tables.checks import Unthreaded, count_months

LISTS, MONTHS = 8, 300
REPLIES = 0.82  # of technical lists: a thread has 5 to 6 messages
CROSS, GHOSTS = 0.02, 0.03
MAX_NAMED = 20

COLUMNS = (
    "list, month, message_id, variant, content_hash, row_hash, sent_at, date_source, date_raw, "
    "subject, subject_base, from_name, from_email, reply_to, recipients, cc, in_reply_to, refs, "
    "list_id, body_kind, body_text, segments, attachments, identifiers, flags, search, topic, "
    "is_answer"
)


def rows(count: int) -> Iterator[tuple[object, ...]]:
    """Yield rows of messages in the order of their dates."""
    chance = random.Random(7)
    recent: list[list[tuple[str, list[str]]]] = [[] for _ in range(LISTS)]
    body = "The worker holds its lease until the clock of the server says otherwise. " * 8
    for number in range(count):
        place = number * MONTHS // count
        month = f"{1998 + place // 12}-{place % 12 + 1:02}"
        board = chance.randrange(LISTS)
        name = f"{hashlib.sha256(str(number).encode()).hexdigest()[:24]}@mail.example.org"
        seen = recent[board if chance.random() > CROSS else chance.randrange(LISTS)]
        named: list[str] = []
        if seen and chance.random() < REPLIES:
            parent, above = seen[-1 - min(int(chance.expovariate(0.08)), len(seen) - 1)]
            if chance.random() < GHOSTS:
                parent = f"lost.{parent}"
            named = [*above, parent][-MAX_NAMED:]
        recent[board].append((name, named))
        del recent[board][:-300]
        sent = f"{month}-{1 + number * MONTHS % count * 28 // count:02} 00:00:00+00"
        subject = f"about the lease {number // 6}"
        key = (f"list-{board}", month, name, 0, name, name[:32].encode())
        people: tuple[object, ...] = ("Ann", "ann@example.org", [], [], [])
        rest: tuple[object, ...] = ("", "plain", body, "[]", "[]", [], [], "", subject, bool(named))
        yield (*key, sent, "date", "", subject, subject, *people, named[-1:], named, *rest)


def fill(connection: psycopg.Connection, count: int) -> None:
    """Load the invented messages."""
    copy_in = f"copy messages ({COLUMNS}) from stdin"
    with connection.cursor() as cursor, cursor.copy(copy_in.encode()) as copy:
        for row in rows(count):
            copy.write_row(row)
    connection.execute("vacuum (analyze) messages")


def main(count: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder) / "postgres")
        try:
            with Database(Path(folder), cluster.start().dsn("postgres")).connect("bench") as c:
                measure(c, count)
        finally:
            cluster.remove()


def measure(connection: psycopg.Connection, count: int) -> None:
    """Build, build again, and build once more after messages have gone, come back and changed."""
    fill(connection, count)
    print("| | seconds | written | deleted | messages read | peak MB |\n|---|---|---|---|---|---|")
    report("all messages", connection)
    report("nothing changed", connection)
    last = "list = 'list-0' and month = (select max(month) from messages)"
    connection.execute(f"create table hidden as select * from messages where {last}".encode())
    connection.execute(f"delete from messages where {last}".encode())
    report("a month of a list vanished", connection)
    connection.execute(
        f"insert into messages ({COLUMNS}, checksum) select {COLUMNS}, checksum from hidden"
    )
    report("it is back", connection)
    connection.execute(
        "update messages set sent_at = sent_at + interval '1 hour' where message_id in"
        " (select message_id from messages order by sent_at desc, message_id limit 500)"
    )
    report("500 messages of a month changed", connection)
    places = connection.execute("select distinct list, month from messages order by month")
    months = [ListMonth(*place) for place in places.fetchall()]
    print("\n| | seconds |\n|---|---|")
    for name, checked in (("check of a month", months[-1:]), ("check of all months", months)):
        began = time.monotonic()
        count_months(connection, checked, Unthreaded)
        print(f"| {name} | {time.monotonic() - began:.4f} |")


def report(name: str, connection: psycopg.Connection) -> None:
    """Print one line of the table."""
    began = time.monotonic()
    counts = build_threads(connection, lambda line: None).counts
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {seconds:.3f} | {counts['written']} | {counts['deleted']} "
        f"| {counts['read']} | {peak:.0f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure threads of a large corpus.")
    parser.add_argument("messages", nargs="?", type=int, default=1_000_000)
    main(parser.parse_args().messages)
