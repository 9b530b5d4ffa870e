"""The scale report assigns time to stages, and names figures that are not linear."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale.report import exponent, read_results, tables
from benchmarks.scale.stages import StepSpan, month_spans, summarize, summarize_steps


def line(what: str, clock: float, processor: float, **fields: Any) -> dict[str, Any]:
    return {"what": what, "clock": clock, "processor": processor, **fields}


#: Two months of two assets: each step begins 2 s after what was before it.
LINES = [
    line("start", 100, 10),
    line("month", 106, 16, asset="messages", list="tide", month="2024-02", stored=8),
    line("month", 108, 17, asset="messages", list="tide", month="2024-03", stored=4),
    line("month", 114, 20, asset="chunks", list="tide", month="2024-02", stored=None),
    line("month", 115, 21, asset="chunks", list="tide", month="2024-03", stored=None),
    line("stage", 116, 22, name="threads"),
    line("stage", 119, 24, name="indexes"),
    line("done", 120, 25),
]
STARTS = {"messages": [102.0], "chunks": [110.0]}


def test_time_in_front_of_a_step_is_not_the_step_s() -> None:
    spans = month_spans(LINES, STARTS)
    assert [(one.what, one.clock, one.processor) for one in spans] == [
        ("messages", 4, 4),
        ("messages", 2, 1),
        ("chunks", 4, 2),
        ("chunks", 1, 1),
    ]


def test_what_no_step_and_no_stage_used_is_between_them() -> None:
    found = summarize(LINES, month_spans(LINES, STARTS))
    assert found["clock"] == 20
    assert found["processor"] == 15
    assert found["stages"]["threads"] == {"processor": 2, "clock": 3}
    assert found["stages"]["indexes"] == {"processor": 1, "clock": 1}
    between = {"processor": 15 - 8 - 3, "clock": 20 - 11 - 4, "share": 4 / 15}
    assert found["between_steps"] == pytest.approx(between)
    assert found["months"]["messages"] == {"first": 500, "middle": 500, "last": 250}
    assert found["months"]["chunks"] == {"first": 250, "middle": 250, "last": 250}


def test_interrupted_backfill_counts_until_its_last_line() -> None:
    later = [
        line("start", 900, 3),
        line("range", 903, 5, peak_mb={"run": 70.0, "postgres": 30.0}),
        line("month", 904, 6, asset="chunks", list="tide", month="2024-03", stored=None),
        line("done", 905, 7, peak_mb={"run": 60.0, "postgres": 40.0}),
    ]
    cut = [*LINES[:4], *later]
    found = summarize(cut, month_spans(cut, {**STARTS, "chunks": [110.0, 903.5]}))
    assert found["clock"] == 14 + 5
    assert found["processor"] == 10 + 4
    assert found["starts"] == 2
    assert found["stages"]["chunks"] == {"processor": 2 + 0.5, "clock": 4 + 0.5}
    assert found["peak_mb"] == {"run": 70, "postgres": 40}


def test_steps_of_parallel_ranges_are_distinguished() -> None:
    def span(run: str, year: int, step: str, began: float, ended: float) -> StepSpan:
        return StepSpan(run, "tide", f"{year}-01", f"{year}-12", step, began, ended)

    spans = [
        span("a", 2023, "", 0, 10),
        span("a", 2023, "mail__messages", 1, 5),
        span("a", 2023, "mail__messages_few_undated", 5, 6),
        span("a", 2023, "mail__chunks", 6, 9),
        span("b", 2024, "", 1, 12),
        span("b", 2024, "mail__messages", 2, 8),
    ]
    counts = {("tide", "2023-02"): 4, ("tide", "2024-12"): 2, ("other", "2023-02"): 100}
    found = summarize_steps(spans, counts)
    assert found["assets"] == {"messages": 10, "chunks": 3}
    assert (found["runs"], found["between"]) == (21, 8)
    assert found["between_share"] == pytest.approx(8 / 21)
    assert found["until_searchable"] == 12
    assert found["ranges"]["messages"] == {"first": 1_000, "middle": 1_000, "last": 3_000}


@pytest.mark.parametrize(
    ("values", "power"), [((2.0, 20.0), 1.0), ((2.0, 200.0), 2.0), ((3.0, 3.0), 0.0)]
)
def test_exponent_is_the_power_of_the_size(values: tuple[float, float], power: float) -> None:
    assert exponent([1_000, 10_000], values) == pytest.approx(power)


def result(messages: int, threads: float) -> dict[str, Any]:
    stages = {"threads": {"processor": threads}, "chunks": {"processor": messages / 100}}
    return {"counts": {"messages": messages}, "fill": {"stages": stages}}


def test_report_names_figures_that_are_not_linear() -> None:
    *_, verdict = tables([result(1_000, 1.0), result(10_000, 20.0)])
    assert verdict == "exponent above 1.05: fill.stages.threads.processor"


def test_parts_of_a_run_are_one_result(tmp_path: Path) -> None:
    parts: list[dict[str, Any]] = [
        {"began": 1.0, "fill": {"processor": 40}, "counts": {"messages": 9}},
        {"began": 3.0, "load_before": 2},
        {"began": 2.0, "fill": {"processor": 4}, "counts": {"messages": 1}},
        {"began": 1.0, "unchanged": {"processor": 5}},
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(part) + "\n" for part in parts))
    small, big = read_results(path)
    assert small["began"] == 2.0
    assert (big["fill"], big["unchanged"]) == ({"processor": 40}, {"processor": 5})
