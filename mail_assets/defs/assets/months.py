"""Runs a step for each month of a run and records each month under its own partition.

A month that fails does not stop the others: the next assets are made for these and skip the failed
month. Then the check months_made of the asset fails the run and names the month. If no month was
made, the step itself fails.

No mail is recorded: the event log gets counts, columns and links to the pages of the archive.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import dagster as dg
import psycopg
from dagster._core.events import DagsterEvent, DagsterEventBatchMetadata
from pydantic import Field

from mail_assets.defs.assets.figures import COUNTED, describe_asset
from mail_assets.defs.failures import (
    MONTHS_MADE,
    StepRetryError,
    check_reasons,
    describe_failed,
    fail_months,
    format_traceback,
    reason_of_month,
)
from mail_assets.defs.partitions import (
    ANY_MONTHS,
    PREFIX,
    WHOLE,
    YEAR,
    asset_key,
    months_of_run,
    partition_key,
)
from mail_assets.defs.runs import MonthFinished, log_month
from mail_assets.errors import MonthError
from mail_assets.files import find_full_disk
from mail_assets.month import ListMonth
from mail_assets.reading.browsing import full_name, row_count
from mail_assets.sources.source import SourceError
from mail_assets.tables.partitions import Counts
from mail_assets.web.requests import month_url
from mail_assets.workspace import Outcome, Workspace

#: Errors of a single month. Any other error, such as a server that is down, ends the run at once.
MONTHLY_ERRORS = (
    MonthError,
    FileNotFoundError,
    # PostgreSQL refuses a value or a row
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
)

#: Metadata of a materialization; Dagster's own type for this is not public.
Metadata = Mapping[str, Any]

#: Makes one month of an asset.
Step = Callable[[ListMonth], Outcome]


class RebuildConfig(dg.Config):
    """Run configuration of every asset that is made from other assets."""

    rebuild: bool = Field(
        default=False,
        description="make it again even if its inputs are the same, and write the differences: "
        "this repairs damaged rows, files or index entries",
    )


def mail_asset(
    *inputs: str, layer: str, monthly: bool = False, **attributes: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return the decorator of an asset that is made from the assets `inputs`.

    A `monthly` asset gets its months from the settings (build_assets). `attributes` are passed to
    `dagster.asset`.
    """

    def decorate(make: Callable[..., Any]) -> dg.AssetsDefinition:
        made: dg.AssetsDefinition = dg.asset(
            key_prefix=PREFIX,
            partitions_def=ANY_MONTHS if monthly else None,
            backfill_policy=YEAR if monthly else WHOLE,
            deps=[asset_key(name) for name in inputs],
            tags={"layer": layer},
            metadata=describe_asset(make.__name__),
            **attributes,
        )(make)
        return made

    return decorate


def record_table(
    connection: psycopg.Connection, table: str, outcome: Outcome, *rows: str
) -> dg.MaterializeResult:
    """Return the result of an asset without months; its rows are the sum of the counts `rows`."""
    return dg.MaterializeResult(
        metadata={
            **outcome.counts,
            **_table_metadata(connection, table, int(sum(outcome.counts[one] for one in rows))),
            **({"note": outcome.note} if outcome.note else {}),
        },
        data_version=dg.DataVersion(outcome.digest[:32]),
    )


def _table_metadata(connection: psycopg.Connection, table: str, rows: int) -> dict[str, Any]:
    return {"dagster/table_name": full_name(connection, table), "dagster/row_count": rows}


def materialize_table(
    context: dg.AssetExecutionContext,
    workspace: Workspace,
    step: Step,
    rows: str,
    about: Metadata = MappingProxyType({}),
    retries: dg.RetryPolicy | None = None,
) -> dg.MaterializeResult:
    """Run a step for each month of the run and report the asset as the table of its name.

    Args:
        rows: name of the count that is a month's number of rows.
        about: metadata that replaces the metadata of the table.
        retries: attempts for months whose source is down for a short time.

    Raises:
        StepFailedError: no month was made, or no check of the run would report the failed ones.
    """
    table, connection = context.asset_key.path[-1], workspace.connection
    made = make_months(context, step, rows, retries=retries)
    known = _table_metadata(connection, table, row_count(connection, table))
    return made.record({**known, **about})


def make_months(
    context: dg.AssetExecutionContext,
    step: Step,
    rows: str,
    describe: Callable[[ListMonth], Metadata] = lambda _: {},
    retries: dg.RetryPolicy | None = None,
) -> "MadeMonths":
    """Run a step for each month of the run, without months that earlier steps could not make.

    Args:
        rows: name of the count that is a month's number of rows.
        describe: returns further metadata of a month.
        retries: attempts for months whose source is down for a short time.

    Raises:
        StepRetryError: a source was down for a short time.
    """
    months, asset = months_of_run(context), context.asset_key.path[-1]
    made = MadeMonths(context, _Inputs.read(context, months))
    web_url = context.resources.workspace.web_url
    for month in months:
        if month in made.inputs.left_out:
            continue
        if reason := made.inputs.stopped.get(month):
            made.failed[month] = reason
            continue
        try:
            outcome = step(month)
        except MONTHLY_ERRORS as error:
            if find_full_disk(error, ()):
                raise  # the next month would fail too
            made.failed[month] = reason_of_month(month, error)
            made.errors.append(error)
            continue
        counts = outcome.counts
        metadata: dict[str, Any] = {
            **({asset: int(counts[COUNTED[asset]])} if asset in COUNTED else {}),
            **counts,
            **({"note": outcome.note} if outcome.note else {}),
            "dagster/partition_row_count": int(counts[rows]),
        }
        if web_url and counts[rows]:
            page = web_url + month_url(month.list_name, month.month)
            metadata["page"] = dg.MetadataValue.url(page)
        made.done[month] = outcome, {**metadata, **describe(month)}
        said = ", ".join(f"{name} {value}" for name, value in counts.items())
        said = outcome.note or (said if outcome.changed else "unchanged")
        finished = MonthFinished(asset, month, counts, outcome.changed)
        log_month(context.log, finished, f"{asset} {month}: {said}")
    if retries and context.op_execution_context.retry_number < retries.max_retries:
        made.retry(retries)
    return made


class _Inputs(NamedTuple):
    """Inputs of the months of a run.

    Attributes:
        left_out: months that an earlier step of the run could not make; it has reported why.
        stopped: months that a check of the run has stopped, with the reasons.
        tags: code and data versions of each month's inputs, as Dagster records them.
    """

    left_out: set[ListMonth]
    stopped: dict[ListMonth, str]
    tags: Mapping[ListMonth, Mapping[str, str]]

    @classmethod
    def read(cls, context: dg.AssetExecutionContext, months: Sequence[ListMonth]) -> Self:
        layer = context.job_def.asset_layer
        parents = layer.get(context.asset_key).parent_keys
        tags = _input_tags(context, parents, months)
        if len(months) == 1:  # Dagster itself runs no step after a failed step or check
            return cls(set(), {}, tags)
        kinds = {
            dg.DagsterEventType.ASSET_MATERIALIZATION,
            dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        }
        made: dict[dg.AssetKey, set[ListMonth]] = {}
        stopped: dict[ListMonth, str] = {}
        records = context.instance.get_records_for_run(context.run.run_id, of_type=kinds).records
        for event in (record.event_log_entry.get_dagster_event() for record in records):
            if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                check = event.asset_check_evaluation_data
                if check.asset_key in parents and check.check_name != MONTHS_MADE:
                    stopped |= check_reasons(check)
            elif event.asset_key in parents and event.partition:
                made.setdefault(event.asset_key, set()).add(ListMonth.parse(event.partition))
        left_out = {one for there in made.values() for one in months if one not in there}
        return cls(left_out, stopped, tags)


def _input_tags(
    context: dg.AssetExecutionContext, parents: Iterable[dg.AssetKey], months: Sequence[ListMonth]
) -> Mapping[ListMonth, Mapping[str, str]]:
    """Return the tags by which Dagster later detects that the inputs of a month have changed."""
    layer, keys = context.job_def.asset_layer, [month.key for month in months]
    tags = {month: {_CODE: layer.get(context.asset_key).code_version or "0"} for month in months}
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    for parent in parents:
        name = parent.to_user_string()
        ids: Mapping[str, int] = {}
        versions: Mapping[str, Mapping[str, str]] = {}
        if layer.get(parent).is_partitioned:
            ids = context.instance.get_latest_storage_id_by_partition(parent, kind, {*keys})
            storage = context.instance.event_log_storage
            versions = storage.get_latest_tags_by_partition(parent, kind, [_VERSION], keys)
        for month, of_month in tags.items():
            version = versions.get(month.key, {}).get(_VERSION, _NO_VERSION)
            of_month[f"dagster/input_data_version/{name}"] = version
            of_month[f"dagster/input_event_pointer/{name}"] = str(ids.get(month.key, _NO_EVENT))
    return tags


#: Dagster's tags, and its values for an input without a version or without an event.
_CODE, _VERSION, _GIVEN = (
    "dagster/code_version",
    "dagster/data_version",
    "dagster/data_version_is_user_provided",
)
_NO_VERSION, _NO_EVENT = "INITIAL", "NULL"


@dataclass
class MadeMonths:
    """Months that a step has made, and the reasons why others failed."""

    context: dg.AssetExecutionContext
    inputs: _Inputs
    done: dict[ListMonth, tuple[Outcome, Metadata]] = field(default_factory=dict)
    failed: dict[ListMonth, str] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """Sums of the counts over all months, without rates and maxima."""
        sums: Counts = {}
        for outcome, _ in self.done.values():
            for name, value in outcome.counts.items():
                if not name.endswith(("_per_second", "_max")):
                    sums[name] = round(sums.get(name, 0) + value, 3)
        return sums

    def retry(self, retries: dg.RetryPolicy) -> None:
        """Raise StepRetryError if a source may work again soon; months made so far are recorded."""
        if any(isinstance(error, SourceError) and error.retryable for error in self.errors):
            self._log_done({})
            attempt = self.context.op_execution_context.retry_number + 1
            raise StepRetryError(describe_failed(self.failed), retries, attempt)

    def record(self, about: Metadata) -> dg.MaterializeResult:
        """Record each month that was made under its own partition and data version.

        The returned result records no month: Dagster would give all months of a run the same
        version, and would also record the failed ones.

        Raises:
            StepFailedError: no month was made, or the run does not include the check that fails it.
        """
        self._log_done(about)
        if not self.failed:
            return dg.MaterializeResult(metadata=_RECORDED)
        stack = format_traceback(self.errors[0]) if self.errors else ""
        failure = fail_months(self.failed, stack)
        reported = dg.AssetCheckKey(self.context.asset_key, MONTHS_MADE)
        if (
            not self.done
            or reported not in self.context.job_def.asset_layer.asset_graph.asset_check_keys
        ):
            raise failure
        return dg.MaterializeResult(metadata={**failure.metadata, **_RECORDED})

    def _log_done(self, about: Metadata) -> None:
        """Record the months that are done, with one statement for all, as Dagster does."""
        # private to Dagster (1.13.27): its log_event stores event by event
        context = self.context.op_execution_context
        batch, last = str(uuid.uuid4()), [*self.done][-1:]
        for month, (outcome, metadata) in self.done.items():
            version = {_VERSION: outcome.digest[:32], _GIVEN: "true"}
            event = DagsterEvent.asset_materialization(
                context._step_execution_context,
                dg.AssetMaterialization(
                    self.context.asset_key,
                    partition=partition_key(month),
                    metadata={**about, **metadata},
                    tags={**self.inputs.tags[month], **version},
                ),
                DagsterEventBatchMetadata(batch, is_end=[month] == last),
            )
            context._events.append(event)


#: Metadata of a step's output that keeps Dagster (1.13.27) from recording a materialization. It is
#: private to Dagster and meant for observations; tests count what is recorded.
_RECORDED = {"__source_asset_observation__": True}
