"""Decisions of many commits at once."""

from pathlib import Path

import psycopg

from mail_assets.reading.decisions import explain_ids
from mail_assets_tests.crane import COMMITTED, Crane
from mail_assets_tests.world import World


def test_round_trips_do_not_depend_on_the_commits(world: World, tmp_path: Path) -> None:
    crane = Crane(world)
    shas = [
        crane.made.commit({f"{n}.c": b"int a%d;\n" % n * 9}, f"part {n}", committed=COMMITTED)
        for n in range(6)
    ]
    mails = [crane.mail(f"v{n}", sha, f"[PATCH] part {n}") for n, sha in enumerate(shas)]
    world.load(*mails, last="patches")
    crane.follow()
    with world.connect() as connection:
        connection.prepare_threshold = None
        trips = [count_trips(connection, some, tmp_path / "trace") for some in (shas[:1], shas)]
        found = explain_ids(connection, shas)
    assert trips[0] == trips[1]
    assert [one.message_ids for one in map(found.__getitem__, shas)] == [
        [f"v{n}@example.org"] for n in range(6)
    ]
    assert [[*one.mails] for one in map(found.__getitem__, shas)] == [
        [f"v{n}@example.org"] for n in range(6)
    ]


def count_trips(connection: psycopg.Connection, shas: list[str], path: Path) -> int:
    """Count the round trips of reading some commits: the server says in each that it is ready."""
    with path.open("w+b") as trace:
        connection.pgconn.trace(trace.fileno())
        try:
            explain_ids(connection, shas)
        finally:
            connection.pgconn.untrace()
        trace.seek(0)
        return sum(b"ReadyForQuery" in line for line in trace)
