"""Follow-up questions keep their context; outcomes of threads are evidence."""

from dataclasses import replace

import psycopg
import pytest

from mail_assets.answers.evidence import (
    BUDGET_SHARE,
    MAX_EARLIER,
    Turn,
    bound_history,
    count_tokens,
    find_evidence,
    find_outcomes,
    requests_in_context,
)
from mail_assets.search.language.request import MAX_QUERY, Request
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.response import Hit
from mail_assets.search.searcher import Searcher


def test_history_has_the_latest_turns_cut() -> None:
    turns = [Turn(f"{n} {'q' * 5_000}", "a" * 5_000) for n in range(9)]
    bounded = bound_history(turns)
    assert [turn.question[:1] for turn in bounded] == ["5", "6", "7", "8"]
    assert {len(turn.question) for turn in bounded} == {MAX_EARLIER}
    assert {len(turn.answer) for turn in bounded} == {MAX_EARLIER}


def test_earlier_answers_lose_their_citations() -> None:
    (turn,) = bound_history([Turn("why?", "So [1], thus [Excerpt 2] and \u30103\u3011.")])
    assert turn.answer == "So, thus and."


def test_follow_up_is_searched_with_and_without_history() -> None:
    request = Request("and since when?", lists=("dev",))
    turns = [Turn(text, "-") for text in ("first", "second", "third")]
    queries = [one.query for one in requests_in_context(request, turns)]
    assert queries == ["second third and since when?", "and since when?"]
    assert {one.lists for one in requests_in_context(request, turns)} == {("dev",)}
    assert requests_in_context(request, ()) == [request]


@pytest.mark.parametrize("length", [10, 1_500, 1_999, 2_000])
def test_query_with_history_fits_the_limit(length: int) -> None:
    request = Request("q" * length)
    turns = bound_history([Turn("e" * 5_000, "-"), Turn("f" * 5_000, "-")])
    for one in requests_in_context(request, turns):
        assert len(parse_request(one).request.query) <= MAX_QUERY
        assert one.query.endswith("q" * length)


REQUEST = Request("which clock decides that a lease is over", lists=("harbor-dev",))
BUDGET = 6000


@pytest.fixture
def decided(searcher: Searcher, connection: psycopg.Connection) -> tuple[list[Hit], list[str]]:
    """Hits, and a message with an outcome in the thread of the first hit."""
    [(thread_id, message_id)] = connection.execute(
        "select s.thread_id, e ->> 'message_id' from thread_summaries s,"
        " jsonb_array_elements(s.sentences) e where e ->> 'part' = 'outcome'"
        " order by s.thread_id limit 1"
    ).fetchall()
    first, *others = searcher.search(REQUEST).hits
    # the hit is another message of the thread; search found that of the outcome too
    return [replace(first, thread_id=thread_id), *others], [message_id]


def test_outcome_has_the_span_of_its_message(
    decided: tuple[list[Hit], list[str]], connection: psycopg.Connection
) -> None:
    outcome, *_ = find_outcomes(connection, *decided, BUDGET)
    [(start, end)] = outcome.spans
    rows = connection.execute(
        "select body_text, subject, from_name from messages where message_id = %s",
        [outcome.hit.message_id],
    ).fetchall()
    assert (rows[0][0][start:end], *rows[0][1:]) == (
        outcome.text,
        outcome.hit.subject,
        outcome.hit.from_name,
    )
    assert (outcome.number, outcome.hit.message_id) == (1, decided[1][0])
    assert outcome.hit.lists == ("harbor-dev",)


def test_outcome_of_an_unfound_message_is_not_read(
    decided: tuple[list[Hit], list[str]], connection: psycopg.Connection
) -> None:
    [outcome] = [x for x in find_outcomes(connection, *decided, BUDGET) if x.hit.score == 0.0]
    assert outcome.hit.message_id in decided[1]
    assert outcome.hit.message_id not in {
        one.hit.message_id for one in find_outcomes(connection, decided[0], [], BUDGET)
    }
    assert find_outcomes(connection, [], [], BUDGET) == []


def test_outcomes_take_a_small_part_of_the_budget(
    decided: tuple[list[Hit], list[str]], connection: psycopg.Connection
) -> None:
    for budget in (100, 1000, 2000, BUDGET):
        found = find_outcomes(connection, *decided, budget)
        assert sum(count_tokens(one.text) for one in found) <= budget * BUDGET_SHARE


def test_outcomes_follow_the_excerpts_of_the_hits_once(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    found = find_evidence(searcher, connection, REQUEST, BUDGET)
    hits = searcher.search(replace(REQUEST, group="message")).hits
    assert [one.number for one in found.excerpts] == [*range(1, len(found.excerpts) + 1)]
    for outcome in find_outcomes(connection, hits, [], BUDGET):
        assert sum(one.contains(outcome) for one in found.excerpts) == 1
