"""Decisions are stored, read with the commits, and shown."""

from typing import Any

import pytest

from mail_assets.tables.lists import show_lists
from mail_assets.tables.thread_summaries import ThreadSummary, read_summary
from mail_assets_tests.world import HARBOR, MARCH, PIER, World, mail

QUESTION = "The valve of the pump leaks at high tide. Could somebody look into it?"
SHA, REVERT = "ab12" * 10, "cd34" * 10


def post(name: str, who: str, day: int, body: str, headers: str = "") -> bytes:
    sent = mail(
        name,
        body,
        sender=f"{who.lower()}@example.org",
        date=f"Tue, {day:02} Mar 2024 09:00:00 +0000",
        references="" if name == "a" else "<a@example.org>",
        subject="the valve" if name == "a" else "Re: the valve",
        headers=headers,
    )
    return sent.replace(b"From: Ann", f"From: {who}".encode())


def commit(world: World, sha: str, email: str, reverts: str = "", linked: str = "") -> None:
    with world.connect() as connection:
        connection.execute(
            "insert into commits (list, month, repository, sha, parents, author_name, author_email,"
            " authored_at, committer_name, committer_email, committed_at, subject, title_key, body,"
            " trailers, named_mails, picked_from, reverts, files, added, removed, patch_id,"
            " line_digests, flags)"
            " select %s, %s, 'pump', %s, '{}', '', '', '2024-03-01', 'Sam', %s, '2024-03-01',"
            " 'Close the valve', '', '', '[]', '{}', '{}', %s, '[]', 0, 0, '', '{}', '{}'",
            (HARBOR, MARCH, sha, email, [reverts] if reverts else []),
        )
        if linked:
            connection.execute(
                "insert into commit_links (repository, sha, message_id, kind, place, evidence)"
                " values ('pump', %s, %s, 'applied', 0, '{patch-id}')",
                (sha, f"{linked}@example.org"),
            )


def summarize(world: World, *mails: bytes) -> ThreadSummary:
    world.load(post("a", "Ann", 5, QUESTION), *mails, month=MARCH)
    world.threads()
    world.summaries()
    return read(world)


def read(world: World) -> ThreadSummary:
    with world.connect() as connection:
        summary = read_summary(connection, "a@example.org")
    assert summary
    return summary


def decision(summary: ThreadSummary) -> dict[str, Any]:
    found: dict[str, Any] | None = summary.as_json()["decision"]
    assert found
    return found


def test_record_cites_who_said_what_and_when(world: World) -> None:
    summary = summarize(world, post("b", "Sam", 6, "Fixed in SVN, thanks for the report."))
    said = decision(summary)["decided"]
    assert said["text"] == "Fixed in SVN, thanks for the report."
    assert (said["who"], said["said_at"], said["message_id"]) == (
        "Sam",
        "2024-03-06T09:00:00Z",
        "b@example.org",
    )
    assert (said["outcome"], said["standing"], said["sha"]) == ("fixed", "", None)


def test_question_without_an_answer_has_no_record(world: World) -> None:
    summary = summarize(world, post("b", "Sam", 6, "I propose to close it. Any objections?"))
    assert summary.as_json()["decision"] is None


def test_committers_decide_and_strangers_do_not(world: World) -> None:
    stranger = post("c", "Eve", 7, "Decision: we drop the valve.")
    summary = summarize(world, post("b", "Sam", 6, "Fixed in SVN."), stranger)
    assert decision(summary)["decided"]["who"] == "Eve"  # nothing is known of either
    commit(world, SHA, "sam@example.org")
    known = decision(read(world))
    assert (known["decided"]["who"], known["decided"]["standing"]) == ("Sam", "committer")
    assert known["decided"]["sha"] == SHA
    assert known["superseded_by"] is None


def test_committers_outcome_excludes_a_strangers(world: World) -> None:
    known, stranger = post("b", "Sam", 6, "Fixed in SVN."), post("c", "Eve", 7, "It was dropped.")
    summary = summarize(world, known, stranger)
    assert find_outcomes(summary) == "bc"  # nothing is known of either
    commit(world, SHA, "sam@example.org")
    assert find_outcomes(read(world)) == "b"
    commit(world, REVERT, "eve@example.org")
    assert find_outcomes(read(world)) == "bc"


def find_outcomes(summary: ThreadSummary) -> str:
    return "".join(x["message_id"][0] for x in summary.sentences if x["part"] == "outcome")


def test_addressee_of_a_question_decides(world: World) -> None:
    asked = post("a", "Ann", 5, QUESTION, "To: Sam <sam@example.org>, list@example.org")
    answers = (post("b", "Sam", 6, "Fixed in SVN."), post("c", "Eve", 7, "Decision: drop it."))
    world.load(asked, *answers, month=MARCH)
    world.threads()
    world.summaries()
    said = decision(read(world))["decided"]
    assert (said["who"], said["standing"]) == ("Sam", "asked")


@pytest.mark.parametrize(("arrived", "standing"), [(4, "asked"), (7, ""), (20, "")])
def test_late_first_message_has_no_addressee(world: World, arrived: int, standing: str) -> None:
    """The id was answered, but not archived. A stranger then sent mail with it to an accomplice."""

    def received(day: int) -> str:
        return f"Received: from x by list.example.org; {day} Mar 2024 09:00:00 +0000"

    forged = post("a", "Eve", 4, QUESTION, f"{received(arrived)}\nTo: Mallory <mal@example.org>")
    world.load(
        forged,
        post("b", "Sam", 5, "Which valve do you mean?", received(5)),
        post("c", "Mal", 21, "Decision: we drop the valve.", received(21)),
        month=MARCH,
    )
    world.threads()
    world.summaries()
    assert decision(read(world))["decided"]["standing"] == standing


def test_commit_decides_if_no_mail_does(world: World) -> None:
    summarize(world, post("b", "Sam", 6, "Here is what I think of it."))
    commit(world, SHA, "sam@example.org", linked="b")
    commit(world, REVERT, "sam@example.org", reverts=SHA, linked="a")
    known = decision(read(world))
    assert known["decided"] is None
    assert [(one["sha"], one["reverted_by"]) for one in known["commits"]] == [
        (SHA, REVERT),
        (REVERT, None),
    ]


def test_deleted_statement_is_not_shown(world: World) -> None:
    summarize(world, post("b", "Sam", 6, "Fixed in SVN."))
    with world.connect() as connection:
        connection.execute(
            "update thread_summaries"
            " set statements = replace(statements::text, 'SVN', 'CVS')::jsonb"
        )
    assert read(world).as_json()["decision"] is None


@pytest.mark.parametrize("lists", [[HARBOR], [PIER]])
def test_closed_lists_show_no_record(world: World, lists: list[str]) -> None:
    summarize(world, post("b", "Sam", 6, "Fixed in SVN."))
    world.load(post("x", "Max", 6, "Of another pier."), month=MARCH, list_name=PIER)
    with world.connect() as connection:
        show_lists(connection, lists)
        summary = read_summary(connection, "a@example.org")
    assert (summary is not None) == (lists == [HARBOR])
