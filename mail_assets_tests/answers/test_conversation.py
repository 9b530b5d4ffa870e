"""A follow-up is asked with what came before it, within bounds."""

import pytest

from mail_assets.answers.answer import Turn
from mail_assets.answers.evidence import MAX_EARLIER, bound_history, requests_in_context
from mail_assets.search.language.request import MAX_QUERY, Request
from mail_assets.search.language.syntax import parse_request


def test_the_latest_turns_count_and_long_ones_are_cut() -> None:
    turns = [Turn(f"{n} {'q' * 5_000}", "a" * 5_000) for n in range(9)]
    bounded = bound_history(turns)
    assert [turn.question[:1] for turn in bounded] == ["5", "6", "7", "8"]
    assert {len(turn.question) for turn in bounded} == {MAX_EARLIER}
    assert {len(turn.answer) for turn in bounded} == {MAX_EARLIER}


def test_an_earlier_answer_loses_its_citations_in_any_form() -> None:
    (turn,) = bound_history([Turn("why?", "So [1], thus [Excerpt 2] and \u30103\u3011.")])
    assert turn.answer == "So, thus and."


def test_a_follow_up_is_searched_with_the_questions_before_it_and_alone() -> None:
    request = Request("and since when?", lists=("dev",))
    turns = [Turn(text, "-") for text in ("first", "second", "third")]
    queries = [one.query for one in requests_in_context(request, turns)]
    assert queries == ["second third and since when?", "and since when?"]
    assert {one.lists for one in requests_in_context(request, turns)} == {("dev",)}
    assert requests_in_context(request, ()) == [request]


@pytest.mark.parametrize("length", [10, 1_500, 1_999, 2_000])
def test_what_is_searched_for_stays_within_what_a_query_may_have(length: int) -> None:
    request = Request("q" * length)
    turns = bound_history([Turn("e" * 5_000, "-"), Turn("f" * 5_000, "-")])
    for one in requests_in_context(request, turns):
        assert len(parse_request(one).request.query) <= MAX_QUERY
        assert one.query.endswith("q" * length)
