"""`mail-assets stats`."""

import json

from mail_assets_tests.cli.conftest import Run
from mail_assets_tests.sample_corpus import TRICKS


def test_stats_account_for_every_message(run: Run) -> None:
    result = run("stats", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    figures = json.loads(line)
    assert [*figures] == ["lists", "threads"]
    assert [*figures["lists"]] == ["harbor-dev", "harbor-es", "harbor-users"]
    assert figures["threads"] > 10
    for one in figures["lists"].values():
        assert [*one] == [
            "months", "found", "messages", "duplicates", "quarantined", "removed", "words",
            "chunks", "vectors",
        ]  # fmt: skip
        assert one["found"] == one["messages"] + one["duplicates"] + one["quarantined"]
        assert one["chunks"] == one["vectors"] > 0
        assert one["words"] == one["messages"]
    dev, es, users = figures["lists"].values()
    assert (dev["months"], dev["found"], dev["duplicates"]) == (2, 59, 1)
    assert (users["months"], users["found"]) == (2, 40)
    assert (es["months"], es["found"], es["messages"]) == (1, len(TRICKS), len(TRICKS))


def test_stats_for_people_is_a_table(run: Run) -> None:
    result = run("stats")
    assert result.exit_code == 0
    header, *rows, threads = result.stdout.splitlines()
    assert {"list", "found", "chunks"} <= {*header.split()}
    assert [row.split()[0] for row in rows] == ["harbor-dev", "harbor-es", "harbor-users"]
    assert {len(row.split()) for row in rows} == {len(header.split())}
    assert threads.endswith(" threads")
