"""Measure how long search takes on a filled home, by mode: the first time a query comes, and later.

    python -m benchmarks.scale.queries

A process of its own, since settings and the key of the encoder are in the environment.
"""

import json
from typing import Any

import numpy as np

from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.settings.settings import Settings, load_settings

#: Subjects of the corpus, drawn by the hash of their messages' ids.
QUERIES, ROUNDS = 40, 3
SUBJECTS = """
select subject_base from messages where length(subject_base) between 15 and 80
 order by md5(message_id) limit %s
"""


def main() -> None:
    """Measure the home of the environment, and print JSON."""
    print(json.dumps(measure_queries(load_settings())))


def measure_queries(settings: Settings) -> dict[str, Any]:
    """Return p50 and p95 in milliseconds by mode, first and warm."""
    with settings.database.connect("scale") as connection:
        subjects = [text for (text,) in connection.execute(SUBJECTS, [QUERIES])]
    figures = {}
    with open_searcher(settings.search) as searcher:
        for mode in MODES:
            requests = [Request(text, mode=mode) for text in subjects]
            rounds = [[searcher.search(one).took_ms for one in requests] for _ in range(ROUNDS + 1)]
            figures[mode] = {
                "first": _percentiles(rounds[0]),
                "warm": _percentiles([took for one in rounds[1:] for took in one]),
            }
    return figures


def _percentiles(took: list[float]) -> dict[str, float]:
    return {f"p{of}": round(float(np.percentile(took, of)), 1) for of in (50, 95)}


if __name__ == "__main__":
    main()
