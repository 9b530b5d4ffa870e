"""The answer of an OpenAI-compatible embeddings server, checked: order, dimension, values, usage.

https://platform.openai.com/docs/api-reference/embeddings. Nothing in an answer is trusted.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mail_assets.encoding.remote_model import MAX_DIMENSION

Vectors = npt.NDArray[np.float32]


class EmbeddingsError(ValueError):
    """An answer without the vectors asked for; the message says what it has instead."""


def sort_embeddings(answer: dict[str, Any], count: int) -> list[Any]:
    """The embeddings of an answer by their `index`: it may have them in any order.

    Raises:
        EmbeddingsError: there is not one for each of `count` texts.
    """
    data = answer.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise EmbeddingsError(f"no list of data: {answer}")
    indexes = [item.get("index") for item in data]
    whole = all(isinstance(index, int) for index in indexes)
    if not whole or sorted(indexes) != [*range(count)]:
        raise EmbeddingsError(
            f"{len(data)} vectors for {count} texts, with index {str(indexes)[:60]}"
        )
    return [item.get("embedding") for item in sorted(data, key=lambda item: item["index"])]


def normalise_embeddings(rows: list[Any], dimension: int, where: str) -> Vectors:
    """The embeddings with length 1, shape (len(rows), dimension); `where` names their texts.

    Raises:
        EmbeddingsError: one has another dimension, or values that are no finite numbers.
    """
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != dimension:
            found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
            raise EmbeddingsError(
                f"{found} instead of a vector of {dimension} for number {number} of "
                f"{where}; check MAIL_ENCODER_DIMENSION, or the model was changed"
            )
    try:
        matrix = np.asarray(rows)
        numbers = matrix.ndim == 2 and matrix.dtype.kind in "iuf"
    except ValueError:  # a list among the numbers
        numbers = False
    if not numbers:  # text and null make another kind of array
        raise EmbeddingsError(f"what are no numbers, in {where}")
    with np.errstate(over="ignore"):  # too large to be squared: infinite
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
    if bad.any():
        raise EmbeddingsError(
            f"zero, infinite or no numbers in the vector of number {bad.argmax() + 1} of "
            f"{where}; the model cannot be used"
        )
    return np.asarray(matrix / lengths, np.float32)


def read_dimension(answer: dict[str, Any]) -> int:
    """The length of the one embedding of an answer.

    Raises:
        EmbeddingsError: there is not one, or no vector bucket takes its length.
    """
    (values,) = sort_embeddings(answer, 1)
    found = len(values) if isinstance(values, list) else 0
    if not 1 <= found <= MAX_DIMENSION:
        raise EmbeddingsError(f"a vector of {found} numbers, 1 to {MAX_DIMENSION} will do")
    return found


def read_usage(answer: dict[str, Any]) -> int:
    """The tokens that the server counted: OpenAI `prompt_tokens`, Voyage `total_tokens`; or 0."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return 0
    used = usage.get("prompt_tokens") or usage.get("total_tokens") or 0
    return used if isinstance(used, int) else 0
