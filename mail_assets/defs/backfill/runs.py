"""Runs the ranges of a backfill in this process, one after another, on the Dagster instance."""

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import dagster as dg

from mail_assets.defs.backfill.report import (
    STATE_COUNTS,
    WORK_COUNTS,
    Listener,
    MonthRange,
    RangeFinished,
    RangeSplit,
    RangeStarted,
    Report,
    RunsPlanned,
    StageStarted,
)
from mail_assets.defs.failures import first_reason, read_failures, was_interrupted
from mail_assets.defs.partitions import CORPUS_ASSETS, asset_key
from mail_assets.defs.runs import PROCESS, RANGE, build_run_logger
from mail_assets.month import ListMonth
from mail_assets.processes.machine import name_process

#: The name of the run's logger, and the run configuration that selects only this logger.
_LOGGER = "backfill"
_RUN_CONFIG: dict[str, Any] = {"loggers": {_LOGGER: {}}}

#: Seconds between two builds of threads during a backfill, so that search knows new threads.
REFRESH_THREADS = 1_800.0

#: Asset -> the op that maintains its index.
MAINTAINED = {"words": "maintain_words", "vectors": "maintain_index"}


class StepOptions(NamedTuple):
    """Run configuration of the assets of a backfill.

    `allow_loss` accepts archives that lost messages. `rebuild` makes everything again, even if its
    record is unchanged.
    """

    allow_loss: bool = False
    rebuild: bool = False

    def configure(self, assets: Sequence[str]) -> dict[str, Any]:
        """Return the run configuration of some assets."""
        given = {name: True for name, is_set in self._asdict().items() if is_set}
        ops = {
            asset: {name: True for name in given if name == "rebuild" or asset == "mbox_archives"}
            for asset in assets
        }
        return {"ops": {op_name(asset): {"config": one} for asset, one in ops.items() if one}}


AS_USUAL = StepOptions()


class Runs:
    """Runs assets for ranges of months on one instance, and reports the result.

    Ctrl-C raises KeyboardInterrupt in each method; the report has what was made so far.
    """

    def __init__(
        self,
        defs: dg.Definitions,
        instance: dg.DagsterInstance,
        listener: Listener,
        assets: Sequence[str],
    ) -> None:
        logger = dg.Definitions(loggers={_LOGGER: build_run_logger(listener)})
        self._defs = dg.Definitions.merge(defs, logger)
        self._job = self._defs.resolve_implicit_global_asset_job_def()
        self._keys = {*self._job.asset_layer.selected_asset_keys}
        self.instance = instance
        self._listener = listener
        self._assets = tuple(assets)
        self._threads_built = time.monotonic()
        # with a fixed time Dagster caches the partitions; listing 8,000 for each check takes 60 ms
        self._partitions_at = datetime.now(UTC)
        self.report = Report()
        self.report.expect(assets)

    def run_ranges(self, ranges: Sequence[MonthRange], options: StepOptions = AS_USUAL) -> None:
        """Run each range."""
        planned = sum(len(one.months) for one in ranges)
        self._listener(RunsPlanned(planned, self._assets))
        for one in ranges:
            self.run_range(one, options)
            if time.monotonic() - self._threads_built > REFRESH_THREADS:
                self.build_threads(["threads"])

    def run_range(self, one: MonthRange, options: StepOptions = AS_USUAL) -> None:
        """Run a range; if its run fails and names no month, run its months one by one."""
        self._listener(RangeStarted(one))
        if not self._run_months(one, options):
            self._listener(RangeSplit(one))
            for month in one.months:
                self._run_months(MonthRange(month, month), options)
        self._listener(RangeFinished(one))

    def build_threads(
        self,
        assets: Sequence[str] = CORPUS_ASSETS,
        options: StepOptions = AS_USUAL,
    ) -> None:
        """Build threads, summarize changed ones, group patches and link commits."""
        self._listener(StageStarted("threads"))
        there = [name for name in assets if asset_key(name) in self._keys]
        result = self._execute(
            self._job,
            asset_selection=[*map(asset_key, there)],
            run_config=options.configure(there),
        )
        for event in result.asset_materializations_for_node(op_name("threads")):
            self.report.threads = _whole_number(event.metadata.get("threads"))
        for event in result.asset_materializations_for_node(op_name("commit_links")):
            counted = {name: event.metadata.get(name) for name in ("commits", "linked")}
            self.report.commits = {name: _whole_number(one) for name, one in counted.items()}
        if not result.success:
            self.report.failed["threads"] = first_reason(result)
        else:
            self.report.failed.pop("threads", None)
        self._threads_built = time.monotonic()

    def read_commits(self, ranges: Sequence[MonthRange], options: StepOptions = AS_USUAL) -> None:
        """Read the commits of ranges of months; a range that fails does not stop the others."""
        self._listener(StageStarted("commits"))
        for one in ranges:
            result = self._run_assets(one, ["commits"], options)
            if not result.success:
                self.report.failed[f"{one} (commits)"] = first_reason(result)

    def maintain_indexes(self) -> None:
        """Compact and index the indexes that have changed, because each written month slows them.

        An index in which little has changed is maintained only if its upkeep is due.
        """
        changed = {
            op: {"config": {"little_changed": not self.report.changed_much_in(asset)}}
            for asset, op in MAINTAINED.items()
            if self.report.changed_in(asset)
        }
        if not changed:
            return
        self._listener(StageStarted("indexes"))
        job = self._defs.resolve_job_def("upkeep")
        result = self._execute(
            job, op_selection=[*changed, "sweep_archives"], run_config={"ops": changed}
        )
        if not result.success:
            self.report.failed["indexes"] = first_reason(result)

    def _run_months(self, one: MonthRange, options: StepOptions) -> bool:
        result = self._run_assets(one, self._assets, options)
        failed = {} if result.success else self._failed_months(result, one)
        if failed is None:
            return False
        self.report.failed.update({str(month): reason for month, reason in failed.items()})
        self.report.done += [month for month in one.months if month not in failed]
        return True

    def _failed_months(
        self, result: dg.ExecuteInProcessResult, one: MonthRange
    ) -> dict[ListMonth, str] | None:
        """Return month -> reason of a failed run; None if it names other failures."""
        failures = {
            failure.subject: failure.reason
            for failure in read_failures(self.instance, result.run_id)
        }
        failed = {month: failures[str(month)] for month in one.months if str(month) in failures}
        if failed and len(failed) == len(failures):
            return failed
        return {one.first: first_reason(result)} if one.first == one.last else None

    def _run_assets(
        self, one: MonthRange, assets: Sequence[str], options: StepOptions
    ) -> dg.ExecuteInProcessResult:
        return self._execute(
            self._job,
            tags=dict(zip(RANGE, (one.first.key, one.last.key), strict=True)),
            asset_selection=[*map(asset_key, assets)],
            run_config=options.configure(assets),
        )

    def _execute(
        self,
        job: dg.JobDefinition,
        run_config: dict[str, Any] | None = None,
        tags: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> dg.ExecuteInProcessResult:
        run_id = str(uuid.uuid4())
        try:
            with dg.partition_loading_context(effective_dt=self._partitions_at):
                result = job.execute_in_process(
                    instance=self.instance,
                    run_id=run_id,
                    run_config={**_RUN_CONFIG, **(run_config or {})},
                    tags={**tags, PROCESS: name_process()},
                    raise_on_error=False,
                    **options,
                )
        finally:
            self._count(run_id)
        if was_interrupted(result):
            raise KeyboardInterrupt
        return result

    def _count(self, run_id: str) -> None:
        """Add the counts of a run from the event log; the result of a run lacks failed steps."""
        records = self.instance.get_records_for_run(
            run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        ).records
        for made in filter(None, (record.asset_materialization for record in records)):
            asset = made.asset_key.path[-1]
            if made.partition and asset in STATE_COUNTS:
                names = STATE_COUNTS[asset] + WORK_COUNTS[asset]
                counts = {name: _whole_number(made.metadata.get(name)) for name in names}
                self.report.add(asset, ListMonth.parse(made.partition), counts)


def op_name(asset: str) -> str:
    """Return the name of the op that makes an asset."""
    return asset_key(asset).to_python_identifier()


def _whole_number(value: object) -> int:
    return int(getattr(value, "value", 0) or 0)
