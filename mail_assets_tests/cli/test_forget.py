"""`forget` and `remember`."""

import os
import uuid
from collections.abc import Callable

import dagster as dg
import pytest
from click.testing import Result

from mail_assets.defs.instance import write_dagster_yaml
from mail_assets_tests.cli.conftest import assert_fails, invoke
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import HARBOR, MARCH, World, mail

Run = Callable[..., Result]


def fill(world: World) -> None:
    world.load(
        mail("a"),
        mail("b", sender="eve@example.net", references="<a@example.org>"),
        last="vectors",
    )
    world.threads()


world = kept_world(fill)


@pytest.fixture
def run(world: World) -> Run:
    environ = world.environ()
    return lambda *arguments: invoke(*arguments, env=environ)


def test_forget_prints_what_it_removed_and_list_why(run: Run, world: World) -> None:
    result = run("forget", "<b@example.org>", "--reason", "asked to", "--by", "the postmaster")
    [(key,)] = world.rows("mbox_archives", "object_key")
    assert (result.exit_code, result.stderr) == (
        0,
        f"threading 1 messages\nstill in the archive {world.store.url(key)}\n",
    )
    assert result.stdout == (
        "forgotten: 1 message in 1 month, 1 chunk, 1 vector, 1 document of words, "
        "1 file of embeddings\n"
    )
    assert world.rows("messages", "message_id") == [("a@example.org",)]
    shown = run("show", "b@example.org")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr == "mail-assets: message b@example.org was forgotten\n"
    header, line = run("forget", "--list").stdout.splitlines()
    assert header.split() == ["day", "kind", "digest", "copies", "by", "reason"]
    assert line.endswith("  1  the postmaster  asked to")
    assert "b@example.org" not in line


def test_forget_rewrites_archives_if_asked_to(run: Run, world: World) -> None:
    world.load(mail("a"), mail("b"), mail("c"), at=1, last="vectors")
    result = run("forget", "b@example.org", "--reason", "asked to", "--archives", "rewrite")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (0, ["cut out of 1 archive"])
    assert "still in the archive" not in result.stderr
    kept = run("forget", "a@example.org", "--reason", "x")
    assert "still in the archive" in kept.stderr


def test_forget_names_a_former_archive_it_cannot_read(run: Run, world: World) -> None:
    world.keep_days = 30
    world.load(mail("a"), at=1, last="vectors")
    [(key,)] = world.rows("former_archives", "object_key")
    (world.home / "store" / key).write_bytes(b"no mail at all")
    result = run("forget", "--sender", "eve@example.net", "--reason", "asked to")
    assert result.exit_code == 1
    url = world.store.url(key)
    assert f"not searched: the former archive {url}: " in result.stderr
    assert "run the same command again when that is repaired" in result.stderr


def test_forget_names_the_remedy_for_a_list_that_is_gone(run: Run, world: World) -> None:
    lists = world.home / "lists.toml"
    before = lists.read_text()
    lists.write_text(before.replace(HARBOR, "pier", 1))
    command = ("forget", "b@example.org", "--reason", "asked to", "--archives", "rewrite")
    failed = run(*command)
    assert failed.exit_code == 1
    *_, why, remedy = failed.stderr.splitlines()
    assert why.endswith(f": put [{HARBOR}] with its source back")
    assert remedy == "mail-assets: run the same command again when that is repaired"
    lists.write_text(before)
    done = run(*command)
    assert (done.exit_code, "cut out of 1 archive" in done.stdout) == (0, True)


def test_dry_run_counts_mail_that_names_a_person(run: Run, world: World) -> None:
    world.load(
        mail("b", sender="eve@example.net"),
        mail("to", headers="To: Eve <eve@example.net>"),
        mail("text", "Ask eve@example.net about tides."),
        at=1,
        last="vectors",
    )
    lines = run("forget", "--sender", "eve@example.net", "--dry-run").stdout.splitlines()
    assert lines[2:] == [
        "named by 1 other message in To, Cc or Reply-To: hidden there",
        "named by 1 other message in subject or text: stays",
    ]
    done = run("forget", "--sender", "eve@example.net", "--reason", "asked to")
    assert "hidden in To, Cc or Reply-To of 1 other message" in done.stdout


def test_restore_forgets_what_its_backup_had_forgotten(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster = dagster_url(world.dsn)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", dagster)
    folder = str(world.home.with_name("backup"))
    run("forget", "--sender", "eve@example.net", "--reason", "asked to")
    run("backup", folder)
    run("remember", "--sender", "eve@example.net")
    world.chain(MARCH)
    assert len(world.rows("messages")) == 2
    taken = run("restore", "--only-forgotten", folder)
    assert (taken.exit_code, taken.stdout.splitlines()) == (
        0,
        [
            "1 new entry of what was forgotten",
            "forgotten: 1 message in 1 month, 1 chunk, 1 vector, 1 document of words, "
            "1 file of embeddings",
        ],
    )
    assert "still in the archive" in taken.stderr
    assert world.rows("messages", "message_id") == [("a@example.org",)]
    again = run("restore", "--only-forgotten", folder)
    assert again.stdout == "0 new entries of what was forgotten\n"


def test_forget_deletes_answers_of_test_queries(
    run: Run, world: World, home_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = dagster_url(home_dsn)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    monkeypatch.setenv("DAGSTER_HOME", str(world.home / "dagster"))
    write_dagster_yaml(world.home / "dagster")
    with dg.DagsterInstance.get() as instance:
        _, going_on = (
            instance.add_run(dg.DagsterRun("test_queries", str(uuid.uuid4()), status=status))
            for status in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.STARTED)
        )
        left = run("forget", "b@example.org", "--reason", "asked to")
        assert [one.run_id for one in instance.get_runs()] == [going_on.run_id]
        instance.report_run_canceled(going_on)
        done = run("forget", "b@example.org", "--reason", "asked to")
        assert instance.get_runs() == []
    said = "deleted 1 run of test_queries in Dagster"
    assert (left.exit_code, left.stdout.splitlines()[-1]) == (1, said)
    assert left.stderr.splitlines()[-2:] == [
        "mail-assets: 1 run of test_queries may hold hits and has not ended",
        "mail-assets: run the same command again when it has ended",
    ]
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, said)


def test_forget_without_its_key_says_what_to_set(run: Run, world: World) -> None:
    run("forget", "b@example.org", "--reason", "asked to")
    for command in (["show", "b@example.org"], ["forget", "b@example.org", "--reason", "x"]):
        environ = {k: v for k, v in world.environ().items() if k != "MAIL_FORGET_KEY"}
        refused = invoke(*command, env=environ)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "set MAIL_FORGET_KEY" in refused.stderr


def test_dry_run_removes_nothing(run: Run, world: World) -> None:
    before = world.writes()
    result = run("forget", "--sender", "Eve@example.net", "--dry-run")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"0 forgotten before\n{HARBOR} {MARCH} <b@example.org>\n"
    assert world.writes() == before
    run("forget", "--sender", "eve@example.net", "--reason", "spam")
    assert run("forget", "--sender", "eve@example.net", "--dry-run").stdout == (
        "1 forgotten before\n"
    )


def test_dry_run_says_when_nothing_matches(run: Run) -> None:
    assert run("forget", "nope@example.org", "--dry-run").stdout == (
        "no message matches, and nothing of this was forgotten before\n"
    )


def test_forget_names_a_user_without_account_by_number(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    assert run("forget", "b@example.org", "--dry-run").exit_code == 0
    assert run("forget", "b@example.org", "--reason", "asked to").exit_code == 0
    assert "  uid 3999999999  asked to" in run("forget", "--list").stdout


def test_remember_names_the_months_to_fill(run: Run, world: World) -> None:
    run("forget", "b@example.org", "--reason", "asked to")
    result = run("remember", "b@example.org", "x@example.org")
    assert (result.exit_code, result.stdout) == (0, f"{HARBOR} {MARCH}\n")
    assert "1 of 2 were not forgotten" in result.stderr
    assert "mail-assets backfill" in result.stderr
    world.chain(MARCH)
    assert len(world.rows("messages")) == 2
    assert run("remember", "b@example.org").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["forget"], "give a MESSAGE_ID or --sender ADDRESS"),
        (["forget", "b@example.org"], "give a --reason"),
        (["forget", "--sender", "eve", "--reason", "x"], "a sender must be an address"),
        (["forget", "<>", "--reason", "x"], "an id must not be empty"),
        (["forget", "b@example.org", "--reason", "x", "--by", ""], "'--by': must not be empty"),
        *(
            (["forget", "--list", *more], "--list stands alone")
            for more in (
                ["b@example.org", "--reason", "x"],
                ["--sender", "eve@example.net"],
                ["--dry-run"],
                ["--archives", "rewrite"],
            )
        ),
        (["remember"], "give a MESSAGE_ID or --sender ADDRESS"),
    ],
)
def test_forget_refuses_wrong_arguments(
    run: Run, world: World, arguments: list[str], why: str
) -> None:
    before = world.writes()
    result = run(*arguments)
    assert_fails(result, 2, why)
    assert world.writes() == before
