"""Measure summaries of all threads of a list, and of those that its last month changes.

    python -m benchmarks.summaries_of_a_month DSN LIST

DSN is of a copy of a mail database (`create database COPY template mail`), which keeps LIST alone:
its last month is taken out, all threads are summarized, the month comes back, and those that it
changed are summarized.
"""

import argparse
import resource
import time

import psycopg

from mail_assets.postgres.migrations import migrate
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.summaries.maker import ExtractiveMaker


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    parser.add_argument("list_name", metavar="LIST")
    arguments = parser.parse_args()
    with psycopg.connect(arguments.dsn, autocommit=True) as connection:
        migrate(connection)
        hold_last_month(connection, arguments.list_name)
        measure(connection, "all")
        measure(connection, "again")
        connection.execute("insert into messages select * from held_messages")
        measure(connection, "a month later")


def hold_last_month(connection: psycopg.Connection, list_name: str) -> None:
    """Leave the months of a list but the last, and no summary."""
    connection.execute("delete from messages where list <> %s", [list_name])
    connection.execute(
        "create temporary table held_messages as select * from messages"
        " where month = (select max(month) from messages)"
    )
    connection.execute("delete from messages where month in (select month from held_messages)")
    connection.execute("truncate thread_summaries")
    connection.execute("delete from partitions where asset = 'thread_summaries'")


def measure(connection: psycopg.Connection, what: str) -> None:
    """Build and summarize what has changed, and print what it took."""
    build_threads(connection, lambda _: None)
    began, used = time.monotonic(), time.process_time()
    counts = summarize_threads(connection, ExtractiveMaker(), lambda _: None).counts
    seconds, processor = time.monotonic() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {counts['made']} of {counts['summaries']} threads, {seconds:.1f} s, "
        f"{processor:.1f} s of processor time, {peak:.0f} MB at the peak"
    )


if __name__ == "__main__":
    main()
