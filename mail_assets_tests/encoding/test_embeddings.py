"""Answers of an embeddings server are checked before use."""

from collections.abc import Callable
from typing import Any

import pytest

from mail_assets.encoding.remote_encoder import (
    EmbeddingsError,
    normalise_embeddings,
    read_dimension,
    read_usage,
    sort_embeddings,
)
from mail_assets_tests.encoding.fake_openai import DIMENSION, MODEL, embeddings
from mail_assets_tests.openai.fake_server import Json

TEXTS = ["one", "two words", "three words more"]


def answer(texts: list[str]) -> Json:
    """Return the answer of the strict server, with the vectors in reverse order."""
    body: Json = embeddings({"model": MODEL, "input": texts}).body
    return body


def item(**fields: Any) -> Callable[[Json], object]:
    """Change the first item of an answer's data, which is the last text's."""
    return lambda body: body["data"][0].update(fields)


def value(number: object) -> Callable[[Json], object]:
    def change(body: Json) -> None:
        body["data"][0]["embedding"][3] = number

    return change


@pytest.mark.parametrize(("change", "says"), [
    (value(float("nan")), "missing numbers, for number 3"),
    (value(float("inf")), "infinite or missing numbers, for number 3"),
    (value(1e300), "infinite or missing numbers, for number 3"),
    (value(None), "values that are not numbers"),
    (value("0.5"), "values that are not numbers"),
    (value([1.0]), "values that are not numbers"),
    (item(embedding=[0.0] * DIMENSION), "a zero vector, or infinite or missing numbers, for num"),
    (item(embedding=[0.5] * 23), "23 numbers instead of a vector of 24 for number 3 of"),
    (item(embedding="QUJD"), "str instead of a vector of 24 for number 3 of texts 1 to 3 of 3"),
    (item(embedding=None), "NoneType instead of a vector"),
    (item(index=0), "3 vectors for 3 texts, with index [0, 1, 0]"),
    (item(index=3), "3 vectors for 3 texts, with index [3, 1, 0]"),
    (item(index="2"), "with index ['2', 1, 0]"),
    (item(index=[]), "with index [[], 1, 0]"),
    (lambda body: body["data"].pop(), "2 vectors for 3 texts"),
    (lambda body: body["data"].append(body["data"][0]), "4 vectors for 3 texts"),
    (lambda body: body.update(data=None), "no list of data"),
    (lambda body: body.update(data=[1, 2, 3]), "no list of data"),
    (lambda body: body.clear(), "no list of data: {}"),
])  # fmt: skip
def test_answer_without_vectors_is_refused(change: Callable[[Json], object], says: str) -> None:
    body = answer(TEXTS)
    change(body)
    with pytest.raises(EmbeddingsError) as caught:
        normalise_embeddings(sort_embeddings(body, 3), DIMENSION, "texts 1 to 3 of 3")
    assert says in str(caught.value)


@pytest.mark.parametrize("values", [[], [0.5] * 4097, None, "AAAA"])
def test_a_dimension_that_no_bucket_takes_is_refused(values: object) -> None:
    body = answer(["one"])
    assert read_dimension(body) == DIMENSION
    body["data"][0]["embedding"] = values
    with pytest.raises(EmbeddingsError, match="use a model with 1 to 4096"):
        read_dimension(body)


@pytest.mark.parametrize(("usage", "tokens"), [
    ({"total_tokens": 5}, 5),
    ({"prompt_tokens": 4, "total_tokens": 5}, 4),
    ({"prompt_tokens": "4"}, 0),
    ({}, 0),
    (None, 0),
])  # fmt: skip
def test_usage_is_read_from_either_kind_of_server(usage: object, tokens: int) -> None:
    assert read_usage({"usage": usage}) == tokens
