"""The log of a run, as values."""

import logging
from pathlib import Path

import dagster as dg

from mail_assets.defs.runs import LogLine, MonthFinished, build_run_logger, log_month
from mail_assets.month import ListMonth

FINISHED = MonthFinished("messages", ListMonth("dev", "2024-03"), {"found": 3}, True)


def test_lines_are_passed_on_without_dagsters_prefix_and_months_as_they_are(
    tmp_path: Path,
) -> None:
    emitted: list[MonthFinished | LogLine] = []

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        context.log.debug("not for people")
        log_month(context.log, FINISHED, "messages dev 2024-03: found 3")
        context.log.warning("slow")

    @dg.job(logger_defs={"log": build_run_logger(emitted.append)})
    def job() -> None:
        work()

    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        assert job.execute_in_process(
            instance=instance, run_config={"loggers": {"log": {}}}
        ).success
    finished, line, warning = emitted
    assert finished == FINISHED
    assert isinstance(line, LogLine)
    assert (line.level, line.text) == (logging.INFO, "messages dev 2024-03: found 3")
    assert isinstance(warning, LogLine)
    assert str(warning).endswith(" warning: slow")
