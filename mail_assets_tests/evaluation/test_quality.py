"""Figures are recorded under names that stay; a judge refuses an index that answers worse."""

import json
from contextlib import nullcontext
from typing import Any, cast

import pytest

from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.evaluation.quality import (
    OpenIndex,
    build_judge,
    build_quality_record,
    describe_quality,
    digest_judged_set,
)
from mail_assets.evaluation.scores import Score
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.response import Response
from mail_assets.tables.indexes import IndexRecord

JUDGED = [JudgedQuery(f"q{n}", f"about {n}", {f"m{n}": 1}) for n in range(12)]


def test_a_judged_set_is_known_by_its_content_not_its_order() -> None:
    assert digest_judged_set(JUDGED) == digest_judged_set(JUDGED[::-1])
    assert digest_judged_set(JUDGED) != digest_judged_set(JUDGED[1:])
    assert digest_judged_set(JUDGED) != digest_judged_set(
        [JUDGED[0]._replace(relevant={"m0": 2}), *JUDGED[1:]]
    )
    assert digest_judged_set(JUDGED) != digest_judged_set(
        [JUDGED[0]._replace(citing=("m9",)), *JUDGED[1:]]
    )


def test_the_digest_of_a_set_stays_what_it_was_recorded_as() -> None:
    assert digest_judged_set(JUDGED[:2]) == "368393f980f1"


def test_figures_are_plain_numbers_under_names_that_stay() -> None:
    score = Score("hybrid", "q0", 0.5, 1.0, 0.25, 1.0, 8.0, 12.0)
    found = json.loads(json.dumps(build_quality_record(JUDGED[:1], [score])))
    names = [
        f"hybrid_{measure}{end}"
        for measure in ("ndcg10", "mrr", "recall50", "success10", "threads10")
        for end in ("", "_low", "_high")
    ]
    assert [*found] == [
        *("judged_set", "queries", *names, "hybrid_p50_ms", "hybrid_p95_ms", "topics")
    ]
    assert all(isinstance(found[name], float) for name in names)
    assert found["topics"] == {"hybrid": {"q0": 0.5}}


class Finding:
    """A searcher that finds the right message at a rank, and nothing else."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def search(self, request: Request) -> Response:
        right = f"m{request.query_id.removeprefix('q')}"
        found = [*(f"x{n}" for n in range(self.rank - 1)), right]
        hits: Any = [type("Hit", (), {"message_id": one, "thread_id": None}) for one in found]
        return Response(request.query_id, request.query, request.mode, 1.0, False, tuple(hits))


def index(name: str) -> IndexRecord:
    return IndexRecord(name, "model", "int8", "print", "2024-03-04", False)


@pytest.mark.parametrize(("candidate", "live", "worse"), [(1, 1, ""), (1, 3, ""), (3, 1, "hybrid")])
def test_a_judge_refuses_what_answers_worse(candidate: int, live: int, worse: str) -> None:
    ranks = {"new": candidate, "old": live}
    judge = build_judge(JUDGED, cast(OpenIndex, lambda one: nullcontext(Finding(ranks[one.name]))))
    verdict = judge(index("new"), index("old"))
    assert verdict.worse.startswith(worse)
    assert bool(verdict.worse) == bool(worse)
    assert [*verdict.figures["quality"]["topics"]] == [*MODES]
    lines = [*describe_quality(verdict.figures)]
    assert [line.split(":")[0] for line in lines] == ["this index", "the live one"]


def test_a_judge_records_the_only_index_without_comparing() -> None:
    judge = build_judge(JUDGED, cast(OpenIndex, lambda one: nullcontext(Finding(2))))
    verdict = judge(index("new"), None)
    assert ([*verdict.figures], verdict.worse) == (["quality"], "")
