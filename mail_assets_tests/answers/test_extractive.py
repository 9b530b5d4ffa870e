"""Sentences of the mail answer without a model, with their places."""

from collections.abc import Sequence

import psycopg
import pytest

from mail_assets.answers.answer import Answer, Turn
from mail_assets.answers.evidence import Evidence, find_evidence
from mail_assets.answers.excerpts import Excerpt
from mail_assets.answers.extractive import (
    FLOORS,
    MAX_OF_MESSAGE,
    MAX_SENTENCES,
    NOT_ENOUGH,
    ExtractiveMaker,
    choose_sentences,
)
from mail_assets.answers.maker import read_answer, stream_answer
from mail_assets.answers.sentences import WeighedSentence
from mail_assets.search.language.request import MODES, Mode, Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.answers.excerpts import excerpt

QUESTION = "when does a lease expire"
MAKER = ExtractiveMaker()


def evidence(
    excerpts: Sequence[Excerpt], sentences: Sequence[WeighedSentence], score: float = 0.8
) -> Evidence:
    return Evidence("why?", (), Mode.hybrid, score, tuple(excerpts), tuple(sentences), 0.0)


def weighed(number: int, place: int, share: float, text: str = "") -> WeighedSentence:
    words = text or " ".join(f"w{number}x{place}y{i}" for i in range(6))
    return WeighedSentence(number, 100 * place, 100 * place + 50, words, share, 0.0, 1 + share)


@pytest.mark.parametrize("mode", MODES)
def test_cited_spans_are_the_sentences(
    searcher: Searcher, connection: psycopg.Connection, mode: str
) -> None:
    found = answer(searcher, connection, Request(QUESTION, mode=mode))
    assert (found.maker, found.sufficient, found.complete) == ("extractive", True, True)
    lines = found.text.split("\n")
    assert 1 <= len(lines) <= MAX_SENTENCES
    cited = [
        f"{' '.join(body(connection, one.message_id)[start:end].split())} [{one.number}]"
        for one in found.citations
        for start, end in one.spans
    ]
    assert cited == lines


def test_same_question_has_the_same_answer(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    texts = {answer(searcher, connection, Request(QUESTION)).text for _ in range(3)}
    assert len(texts) == 1


def test_unanswerable_question_is_refused(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    found = answer(searcher, connection, Request("which oven bakes the best sourdough bread"))
    assert (found.text, found.sufficient, found.complete) == (NOT_ENOUGH, False, True)
    assert found.citations == ()


def test_follow_up_is_answered_in_its_context(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    follow_up = Request("and what was it changed to?")
    alone = answer(searcher, connection, follow_up)
    asked = answer(searcher, connection, follow_up, [Turn(QUESTION, "The lease ran out [1].")])
    assert not alone.sufficient
    assert asked.sufficient


def test_confidence_includes_the_words_of_the_thread(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    request = Request(QUESTION)
    best, *_ = hits = searcher.search(request).hits
    nearest = 1 - min(one.why.distance for one in hits if one.why.distance is not None)
    words = searcher.weigh_thread(request, best.message_id)
    found = find_evidence(searcher, connection, request, MAKER.budget)
    assert found.confidence == pytest.approx((best.score + nearest + words) / 3)


def test_question_with_an_id_has_full_confidence(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    request = Request("<20240304090533.GE9223@solheim.example.org>")
    assert find_evidence(searcher, connection, request, MAKER.budget).confidence == 1.0


@pytest.mark.parametrize(
    ("question", "mode", "doubts"),
    [
        ("今天晚饭吃什么？ lease", "hybrid", True),
        ("为什么 lease 会丢失", "semantic", True),
        ("今天晚饭吃什么 lease", "fulltext", False),
        (f"{QUESTION} 鈴木", "hybrid", False),
        ("почему теряется lease", "hybrid", False),
    ],
)
def test_unknown_script_of_a_question_is_doubted(
    searcher: Searcher, connection: psycopg.Connection, question: str, mode: str, doubts: bool
) -> None:
    found = find_evidence(searcher, connection, Request(question, mode=mode), MAKER.budget)
    assert bool(found.doubt) == doubts
    assert (found.confidence == 0) == doubts
    if doubts:
        said = read_answer(stream_answer(MAKER, found))
        assert (said.text, said.sufficient) == (f"{NOT_ENOUGH}\n{found.doubt}", False)


@pytest.mark.parametrize("mode", MODES)
def test_confidence_below_the_floor_gives_no_answer(mode: str) -> None:
    floor = FLOORS[Mode(mode)]
    found = evidence([excerpt(1, "")], [weighed(1, 0, 1.0)])
    for score, count in ((floor, 1), (floor - 0.001, 0)):
        of_mode = Evidence("why?", (), mode, score, found.excerpts, found.sentences, 0.0)
        assert len(choose_sentences(of_mode)) == count


def test_best_sentences_are_chosen_in_order_of_the_mail() -> None:
    excerpts = [excerpt(1, "", 0.8), excerpt(2, "", 0.7), excerpt(3, "", 0.6)]
    of_first = [weighed(1, place, 0.9 - 0.01 * place) for place in range(6)]
    others = [weighed(2, 1, 0.5), weighed(2, 0, 0.6), weighed(3, 0, 0.5)]
    chosen = choose_sentences(evidence(excerpts, [*of_first, *others]))
    assert [(one.number, one.start) for one in chosen] == [
        *((1, 100 * place) for place in range(MAX_OF_MESSAGE)),
        *((2, 0), (2, 100)),
    ]


def test_repeated_and_unrelated_sentences_are_left_out() -> None:
    said = "The lease of a worker expires after thirty seconds."
    again = "So the lease of a worker expires after thirty seconds, as was said."
    sentences = [weighed(1, 0, 0.9, said), weighed(2, 0, 0.8, again), weighed(2, 1, 0.0)]
    chosen = choose_sentences(evidence([excerpt(1, ""), excerpt(2, "")], sentences))
    assert [one.text for one in chosen] == [said]


def answer(
    searcher: Searcher,
    connection: psycopg.Connection,
    request: Request,
    history: Sequence[Turn] = (),
) -> Answer:
    found = find_evidence(searcher, connection, request, MAKER.budget, history)
    return read_answer(stream_answer(MAKER, found))


def body(connection: psycopg.Connection, message_id: str) -> str:
    rows = connection.execute(
        "select body_text from messages where message_id = %s", [message_id]
    ).fetchall()
    return str(rows[0][0])
