"""`mail-assets list`."""

import json

from mail_assets_tests.cli.conftest import Run, spawn
from mail_assets_tests.sample_corpus import Corpus


def test_list_gives_each_message_on_a_line_in_the_order_of_the_archive(run: Run) -> None:
    result = run("list", "--list", "harbor-dev", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 58
    assert [*rows[0]] == [
        "message_id", "month", "subject", "from_email", "sent_at", "in_reply_to", "thread_id",
        "archive_offset", "archive_length", "content_hash", "flags",
    ]  # fmt: skip
    places = [(row["month"], row["archive_offset"]) for row in rows]
    assert places == sorted(places)
    assert all(row["sent_at"].endswith("Z") and "<" not in row["message_id"] for row in rows)


def test_list_of_a_month_has_that_month_only(run: Run) -> None:
    result = run("list", "--list", "harbor-dev", "--month", "2024-04", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["month"] for row in rows} == {"2024-04"}
    assert len(rows) == 20
    people = run("list", "--list", "harbor-dev", "--month", "2024-04")
    assert len(people.stdout.splitlines()) == 20


def test_list_of_a_month_without_mail_is_empty_and_no_failure(run: Run) -> None:
    result = run("list", "--list", "harbor-dev", "--month", "2001-01", "--json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_a_reader_of_list_that_leaves_early_sees_no_traceback(corpus: Corpus) -> None:
    done = spawn(["list", "--list", "harbor-dev", "--json"], corpus.environ, "| head -1")
    assert json.loads(done.stdout)["month"] == "2024-03"
    assert done.stderr == b""
