"""Texts are measured against a query by the words that search weighs, and by the model."""

import pytest

from mail_assets.search.language.request import Mode, Request, RequestError
from mail_assets.search.searcher import Searcher

REQUEST = Request("when do leases expire", lists=("harbor-dev",))
TEXTS = ["The lease had expired.", "A lease is renewed.", "Bread is baked at night.", ""]


def test_a_text_has_the_share_of_the_words_in_any_form(searcher: Searcher) -> None:
    both, one, none, empty = searcher.weigh_texts(REQUEST, TEXTS)
    assert both == 1.0 > one > none == empty == 0.0


def test_meaning_is_compared_where_a_model_is_asked(searcher: Searcher) -> None:
    both, one, none, _ = searcher.compare_texts(REQUEST, TEXTS)
    assert min(both, one) > none
    assert searcher.compare_texts(REQUEST, []) == []
    words = Request("when do leases expire", mode=Mode.fulltext)
    assert searcher.compare_texts(words, TEXTS) == [0.0] * len(TEXTS)


#: It answers somebody whose customer got an invoice twice, and says nothing of invoices.
MESSAGE = "20240304090533.GE9223@solheim.example.org"


def test_a_message_has_the_words_of_its_thread_too(searcher: Searcher) -> None:
    def weigh(words: str) -> float:
        return searcher.weigh_thread(Request(words), MESSAGE)

    assert weigh("invoice lease") == weigh("lease worker") == 0.5, "of two words one says nothing"
    assert weigh("invoice lease worker") > 0.6 > weigh("lease sourdough") > 0.0
    assert weigh("lease") == weigh("sourdough") == weigh("has:patch") == 0.0
    assert searcher.weigh_thread(Request("lease worker"), "no@such.example.org") == 0.0


def test_a_query_without_words_weighs_nothing(searcher: Searcher) -> None:
    assert searcher.weigh_texts(Request("has:patch"), TEXTS) == [0.0] * len(TEXTS)


def test_a_wrong_filter_is_an_error(searcher: Searcher) -> None:
    with pytest.raises(RequestError):
        searcher.weigh_texts(Request("lease", lists=("nowhere",)), TEXTS)
