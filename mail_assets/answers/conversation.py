"""Follow-up questions: the earlier questions and answers that they are asked in."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.turn import Turn
from mail_assets.search.request import MAX_QUERY, Request

#: Earlier questions and answers that count, the latest ones.
MAX_TURNS = 4
#: Characters of an earlier question or answer that count.
MAX_EARLIER = 1_000
#: Earlier questions whose words are searched for beside those of a follow-up.
SEARCHED_TURNS = 2


def bound_history(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the latest turns, cut, and without citations: their numbers are of other excerpts."""
    return tuple(
        Turn(turn.question[:MAX_EARLIER], _without_citations(turn.answer)[:MAX_EARLIER])
        for turn in turns[-MAX_TURNS:]
    )


def requests_in_context(request: Request, history: Sequence[Turn]) -> list[Request]:
    """Return what is searched for: the question with the latest ones before it, and by itself.

    "And when was that fixed?" finds nothing by itself; a new subject is not found beside the old.
    """
    if not history:
        return [request]
    earlier = _join(turn.question for turn in history[-SEARCHED_TURNS:])
    room = max(0, MAX_QUERY - len(request.query) - 1)
    return [replace(request, query=_join((earlier[:room], request.query))), request]


def _join(texts: Iterable[str]) -> str:
    return " ".join(text.strip() for text in texts).strip()


def _without_citations(answer: str) -> str:
    numbers = CitationFilter(())
    return numbers.feed(answer) + numbers.finish()
