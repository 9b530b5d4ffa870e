"""`mail-assets list` and `stats`."""

import json

from mail_assets_tests.cli.conftest import Run, spawn
from mail_assets_tests.sample_corpus import TRICKS, Corpus


def test_list_prints_messages_in_the_order_of_the_archive(run: Run) -> None:
    result = run("list", "harbor-dev", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 58
    assert [*rows[0]] == [
        "message_id", "month", "subject", "from_email", "sent_at", "in_reply_to", "thread_id",
        "archive_offset", "archive_length", "content_hash", "flags", "contested",
    ]  # fmt: skip
    places = [(row["month"], row["archive_offset"]) for row in rows]
    assert places == sorted(places)
    assert all(row["sent_at"].endswith("Z") and "<" not in row["message_id"] for row in rows)


def test_list_of_a_month_has_that_month_only(run: Run) -> None:
    result = run("list", "harbor-dev", "--month", "2024-04", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["month"] for row in rows} == {"2024-04"}
    assert len(rows) == 20
    people = run("list", "harbor-dev", "--month", "2024-04")
    assert len(people.stdout.splitlines()) == 20


def test_list_of_a_month_without_mail_exits_0(run: Run) -> None:
    result = run("list", "harbor-dev", "--month", "2001-01", "--json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_reader_of_list_that_leaves_early_sees_no_traceback(corpus: Corpus) -> None:
    done = spawn(["list", "harbor-dev", "--json"], corpus.environ, "| head -1")
    assert json.loads(done.stdout)["month"] == "2024-03"
    assert done.stderr == b""


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
