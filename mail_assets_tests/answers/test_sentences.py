"""Sentences of excerpts are chosen, placed and scored."""

from collections.abc import Sequence

import pytest

from mail_assets.answers.sentences import (
    MAX_COMPARED,
    SIMILARITY_SHARE,
    SUBJECT_SHARE,
    Meter,
    find_telling_sentences,
    weigh_sentences,
)
from mail_assets_tests.answers.excerpts import excerpt


@pytest.mark.parametrize(
    "text",
    [
        "Why does the lease of a paused worker expire?",
        "I wonder why the lease of a worker expires here.",
        "Any ideas why the lease of a worker expires would help.",
        "The lease of a worker expires like this:",
        "As in [2] the lease of a worker expires.",
        "Hi all,",
        "$ harbor lease --renew worker one two three",
        "and so the lease of a worker expires at last.",
        # goes on in lines that are a display, or look like code
        "So.\n\n     (2)  But, where leases of a worker end\n          at noon, go on.\n\nYes.",
        "The lease of a worker that expires\nlease = renew(worker); ends.",
        # what was changed in each file
        "So:\n\n  man/a/lease.2: Add the lease of a worker\n  sys/a.2: X: wfix\n  man/b.2: X: fix",
    ],
)
def test_meaningless_sentence_is_not_chosen(text: str) -> None:
    assert [*find_telling_sentences(excerpt(1, text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "The lease of a worker expires at noon",
        "The lease of a worker expires at noon\n \nlease = renew(worker);",
        "- The lease of a worker expires at noon\n- see (a)",
        'The lease of a worker expires ("at noon.")\nlease = renew(worker);',
        "As harbor/lease.c: the lease of a worker expires at noon",
    ],
)
def test_unmarked_sentence_ends_with_its_paragraph(text: str) -> None:
    [found] = find_telling_sentences(excerpt(1, text))
    assert found.text.endswith(("at noon", 'noon.")'))


def test_sentence_has_its_place_in_the_body() -> None:
    text = "Hi Bo,\n\nThe lease of a worker\nexpires after a while.  It is renewed by a thread."
    found = [*find_telling_sentences(excerpt(1, text))]
    assert [one.text for one in found] == [
        "The lease of a worker expires after a while.",
        "It is renewed by a thread.",
    ]
    assert [" ".join(text[x.start - 100 : x.end - 100].split()) for x in found] == [
        one.text for one in found
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("満潮のとき水泵が止まる理由は、弁が塩で固まるからです。", 1),
        ("水泵漏水。", 0),
        ("漢字" * 50_000, 0),
        ("word " * 20_000, 0),
        ("", 0),
    ],
    ids=["japanese", "too-short", "no-mark-or-blank", "no-mark", "empty"],
)
def test_sentence_length_is_limited_in_any_script(text: str, count: int) -> None:
    assert len([*find_telling_sentences(excerpt(1, text))]) == count


def weigh(texts: Sequence[str]) -> list[float]:
    """The share of two words of the question: "lease" is in the sentences, "leases" in subjects."""
    return [sum(word in text.split() for word in ("lease", "Leases")) / 2 for text in texts]


def test_score_adds_subject_words_and_the_message_score() -> None:
    meter = Meter(weigh, lambda texts: [0.0] * len(texts))
    excerpts = [
        excerpt(1, "The lease of a worker expires.", 0.8),
        excerpt(2, "It is never so.", 0.4),
    ]
    (first,) = weigh_sentences(excerpts, meter)[:1]
    assert (first.own, first.near) == (0.5, 0.0)
    assert first.score == pytest.approx(0.5 + SUBJECT_SHARE * 0.5 + 1.0)
    (weaker,) = weigh_sentences([excerpts[0], excerpt(2, "The lease ends at noon.", 0.4)], meter)[
        1:
    ]
    assert weaker.score == pytest.approx(0.5 + SUBJECT_SHARE * 0.5 + 0.5)


def test_similarity_is_scaled_and_only_for_the_best() -> None:
    asked: list[str] = []

    def compare(texts: Sequence[str]) -> list[float]:
        asked.extend(texts)
        return [0.7 + 0.1 * (place == 3) for place in range(len(texts))]

    text = " ".join(f"The lease number {n} expires today." for n in range(100))
    found = weigh_sentences([excerpt(1, text)], Meter(weigh, compare))
    assert len(found) == 100
    assert len(asked) == MAX_COMPARED
    assert [one.text for one in found if one.near] == [asked[3]]
    assert found[3].score == pytest.approx(found[0].score + SIMILARITY_SHARE)


def test_no_excerpts_have_no_sentences() -> None:
    assert weigh_sentences([], Meter(weigh, lambda texts: [])) == []
