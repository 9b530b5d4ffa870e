"""Vectors for tests: a few of 8 dimensions with every kind of metadata, and clusters of 64."""

from __future__ import annotations

import numpy as np

from mail_assets.vectors.index import Floats, IndexSpec, Vector, VectorIndex
from mail_assets.vectors.open import open_bucket

SPEC = IndexSpec(
    name="chunks-v1.minilm",
    dimension=8,
    fields={"list": "string", "month": "number", "sender": "string"},
    non_filterable=("subject",),
)
MAIL = IndexSpec("mail", 64, {"list": "string", "sender": "string", "month": "number"})


def make_index(url: str, spec: IndexSpec = MAIL, dsn: str | None = None) -> VectorIndex:
    """Open an index, and make it where it does not exist."""
    opened = open_bucket(url, dsn=dsn).index(spec)
    opened.ensure()
    return opened


def unit(seed: int, dimension: int = SPEC.dimension) -> Floats:
    values = np.random.default_rng(seed).standard_normal(dimension)
    return (values / np.linalg.norm(values)).astype(np.float32)


def vector(number: int, **metadata: str | int | float) -> Vector:
    return Vector(f"key-{number:04}", unit(number), dict(metadata))


def cosine_distance(a: Floats, b: Floats) -> float:
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(1 - x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


LISTS = ("a", "b", "it's", "", "😀", "back\\slash", 'quo"te', "per%cent", "`tick`", "NULL")
MONTHS = (-1, 0, 0.5, 1, 202401, 202402, 2**53)
POPULATION = [
    Vector(
        f"key-{number:03}",
        unit(number),
        {
            **({"list": LISTS[number % len(LISTS)]} if number % 4 else {}),
            **({"month": MONTHS[number % len(MONTHS)]} if number % 3 else {}),
            **({"sender": f"s{number % 5}"} if number % 5 else {}),
            "subject": "not filterable",
        },
    )
    for number in range(90)
]


def clustered(count: int, seed: int = 0) -> Floats:
    """Return unit vectors around 40 centres, which are the same for every seed."""
    centres = np.random.default_rng(0).standard_normal((40, MAIL.dimension))
    rng = np.random.default_rng([seed, 1])
    values = centres[rng.integers(0, 40, count)]
    values += 0.5 * rng.standard_normal(values.shape)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return values.astype(np.float32)


def mail_vectors(values: Floats, start: int = 0) -> list[Vector]:
    """Return vectors of the index MAIL, numbered from `start`."""
    return [
        Vector(
            f"key-{n:05}",
            row,
            {"list": f"list-{n % 4}", "sender": f"sender-{n % 1_500}", "month": 200001 + n % 300},
        )
        for n, row in enumerate(values, start)
    ]
