"""The jobs for months, threads, commits and indexes, and the upkeep of a home.

https://docs.dagster.io/guides/build/jobs
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from mail_assets.defs.checks.index import MOST_MEASUREMENTS
from mail_assets.defs.failures import MONTHS_MADE, first_reason, stops, was_interrupted
from mail_assets.defs.partitions import CORPUS_ASSETS, MONTHLY, asset_key
from mail_assets.defs.pruning import prune_old
from mail_assets.defs.query_job import test_queries
from mail_assets.defs.resources import (
    ArchiveSourceResource,
    DatabaseResource,
    EncoderResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.indexes.live import LifecycleError, follow_version
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.names import index_name
from mail_assets.operations import KEEP_DAYS
from mail_assets.operations.damage import examine_damage, examine_schema, open_indexes
from mail_assets.operations.examine import examine_live_encoder
from mail_assets.steps.fetch_archive import sweep_former_archives
from mail_assets.vectors.index import VectorIndex
from mail_assets.words.index import WordIndex

#: Time after which Dagster ends a run of the upkeep, because it probably hangs.
_ONE_DAY = {"dagster/max_runtime": str(24 * 3600)}

#: Assets whose checks read each month. `commits` exists only if lists.toml names a repository.
_CHECKED = {*MONTHLY, *CORPUS_ASSETS, "commits"}

#: Assets without months, which are made once after all changed months. Links of commits exist only
#: if lists.toml names a repository.
_THREADS = dg.AssetSelection.assets(
    asset_key("threads"), asset_key("thread_summaries"), asset_key("patch_series")
) | dg.AssetSelection.tag("layer", "links")

_SEARCH = dg.AssetSelection.assets(asset_key("search_quality"), asset_key("search_audit"))

#: Everything from the archive to the two indexes, without assets that are made once for all months.
refresh_archives = dg.define_asset_job(
    "refresh_archives",
    selection=dg.AssetSelection.all() - _SEARCH - _THREADS,
    description="Fetch the archive of a month and make all assets up to the two indexes.",
)

build_threads = dg.define_asset_job(
    "build_threads",
    selection=_THREADS,
    description="Build the threads of changed messages, summarize changed threads, group changed "
    "patches into series, link commits, and check the months of their messages.",
)

refresh_commits = dg.define_asset_job(
    "refresh_commits",
    selection=dg.AssetSelection.assets(asset_key("commits")),
    description="Read the commits of a month of the repositories of lists.toml.",
)

#: A backfill of this job over all months continues where the last one stopped.
fill_index = dg.define_asset_job(
    "fill_index",
    selection=dg.AssetSelection.assets(asset_key("embeddings"), asset_key("vectors")),
    description="Encode the chunks of a month with the configured model and fill its index. The "
    "live index is not changed. Nothing is fetched, parsed or cut again.",
)

JOBS = (refresh_archives, build_threads, fill_index, test_queries)


class MaintainConfig(dg.Config):
    """Run configuration of maintain_index and maintain_words.

    With `little_changed`, an index is maintained only if its upkeep is due. Indexing again takes 12
    to 30 s per 100,000 entries, even if few are new.
    """

    little_changed: bool = False


@dg.op(tags={"dagster/priority": "8"})
def maintain_index(
    context: dg.OpExecutionContext,
    config: MaintainConfig,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> None:
    """Compact the live vector index and index its new vectors. If the configured encoder has
    another index, do the same there. This is not part of a month's run, because compaction fails if
    another process writes.
    """
    with database.connect("maintain_index", context.run.run_id) as connection:
        try:
            live = vector_bucket.open_live_index(connection, encoder).index
        except LifecycleError as error:
            raise dg.Failure(str(error), allow_retries=False) from None
    configured = vector_bucket.open_index(encoder).index
    indexes = {live.spec.name: live}
    if configured.spec.name in vector_bucket.open().indexes():
        indexes[configured.spec.name] = configured
    for index in indexes.values():
        _maintain(context, config, index)
    records = [dg.TableRecord(index.describe()) for index in indexes.values()]
    context.add_output_metadata({"indexes": dg.MetadataValue.table(records)})


@dg.op(tags={"dagster/priority": "8"})
def maintain_words(
    context: dg.OpExecutionContext,
    config: MaintainConfig,
    database: DatabaseResource,
    words: WordsResource,
) -> None:
    """Compact the word index and index its new documents. The index of a new version becomes live
    when it has every message.
    """
    mail_words = words.open()
    index = mail_words.index
    _maintain(context, config, index)
    with database.connect("maintain_words", context.run.run_id) as connection:
        if follow_version(connection, mail_words):
            context.log.info(f"search uses {mail_words.name} from now on")
    record = dg.TableRecord(index.describe())
    context.add_output_metadata({"indexes": dg.MetadataValue.table([record])})


def _maintain(
    context: dg.OpExecutionContext, config: MaintainConfig, index: VectorIndex | WordIndex
) -> None:
    if config.little_changed and not index.needs_upkeep():
        context.log.info(f"little has changed in {index.label}: its upkeep is not due yet")
        return
    context.log.info(f"maintaining {index.label}")
    index.maintain()


@dg.op(tags={"dagster/priority": "8"})
def sweep_archives(context: dg.OpExecutionContext, workspace: WorkspaceResource) -> None:
    """Delete former archives that were kept for MAIL_KEEP_ARCHIVES days."""
    with workspace.open(context) as opened:
        context.add_output_metadata({"expired": sweep_former_archives(opened)})


@dg.op(tags={"dagster/priority": "0"})
def find_damage(
    context: dg.OpExecutionContext,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
    words: WordsResource,
    archive_source: ArchiveSourceResource,
) -> None:
    """Compare the schema, all rows and files, and each index entry with what was recorded, like
    `mail-assets doctor --deep`. It fails if anything is damaged, and names the commands that repair
    it.
    """
    lists = [*archive_source.sources]
    with workspace.open(context) as opened:
        found = [*examine_schema(opened.connection)]
        if not found:
            bucket = MailBucket(vector_bucket.open(), vector_bucket.url)
            configured = encoder.name, encoder.precision
            indexes, found = open_indexes(opened.connection, words.open(), bucket, *configured)
            found += examine_live_encoder(opened.connection, bucket.url, index_name(*configured))
            found += examine_damage(opened, lambda month: month.list_name in lists, lists, indexes)
    records = [dg.TableRecord(one._asdict()) for one in found]
    context.add_output_metadata({"damage": dg.MetadataValue.table(records, DAMAGE_SCHEMA)})
    if found:
        raise dg.Failure(
            "; ".join(f"{one.problem}: {one.where}: {one.remedy}" for one in found),
            allow_retries=False,
        )


DAMAGE_SCHEMA = dg.TableSchema(
    [dg.TableColumn(name, "string") for name in ("problem", "where", "remedy")]
)


def build_upkeep(defs: dg.Definitions) -> dg.JobDefinition:
    """Build the job of the weekly upkeep; `defs` has all assets, checks and resources.

    No op depends on another, so that one that fails does not stop the others. Their priorities set
    the order. Quality is measured after the maintenance of indexes, because that changes the hits
    of approximate indexes. Checks come last.
    """
    specs = [spec for check in defs.asset_checks or () for spec in check.check_specs]
    # without months_made: it reads the history of runs, which the copy in memory does not have
    checks = [
        spec.key
        for spec in specs
        if spec.asset_key.path[-1] in _CHECKED and spec.name != MONTHS_MADE
    ]
    jobs = (
        dg.define_asset_job(
            "count_searches",
            dg.AssetSelection.assets(asset_key("search_audit")),
            description="Add the counts of the searches that were served since the last run.",
        ),
        dg.define_asset_job(
            "measure_quality",
            dg.AssetSelection.assets(asset_key("search_quality")),
            description="Measure the judged queries of MAIL_QUALITY_SET and compare the result.",
        ),
        dg.define_asset_job(
            "check_all_months",
            dg.AssetSelection.checks(*checks),
            description="Check every month that was ever materialized.",
        ),
    )
    inner = dg.Definitions.merge(defs, dg.Definitions(jobs=jobs))
    ops = [
        _build_asset_op(inner, job.name, job.description or "", priority)
        for priority, job in enumerate(reversed(jobs), 1)
    ]

    @dg.job(
        description="Keep a home fast and small. Delete runs, embeddings, counts of searches and "
        f"versions of indexes that are older than {KEEP_DAYS} days and not needed, and former "
        "archives after MAIL_KEEP_ARCHIVES days. Compact and index the vector index and the word "
        "index. Count searches, measure quality, check every month, and look for damage.",
        tags=_ONE_DAY,
    )
    def upkeep() -> None:
        for op in (prune_old, maintain_index, maintain_words, sweep_archives, find_damage, *ops):
            op()

    return upkeep


def _build_asset_op(
    defs: dg.Definitions, name: str, description: str, priority: int
) -> dg.OpDefinition:
    """Build an op that runs assets and checks, because a job of Dagster has either ops or assets.

    They run in an instance in memory, and their events are recorded in the real one afterwards. If
    the run were in the real instance, the daemon of a cluster would mark it as failed, because it
    has no worker.
    """

    @dg.op(name=name, description=description, tags={"dagster/priority": str(priority)})
    def run_assets(context: dg.OpExecutionContext) -> None:
        with _copy_history(context.instance) as instance:
            result = defs.resolve_job_def(name).execute_in_process(
                instance=instance, raise_on_error=False
            )
        if was_interrupted(result):
            raise KeyboardInterrupt
        evaluations = result.get_asset_check_evaluations()
        for event in result.get_asset_materialization_events():
            context.instance.report_runless_asset_event(event.materialization)
        for evaluation in evaluations:
            context.instance.report_runless_asset_event(evaluation)
        failed = [f"check {one.check_name} {one.description}" for one in evaluations if stops(one)]
        if failed or not result.success:
            raise dg.Failure("; ".join(failed) or first_reason(result), allow_retries=False)

    return run_assets


@contextmanager
def _copy_history(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Yield an instance in memory with a copy of the measurements of search_quality."""
    key = asset_key("search_quality")
    with dg.DagsterInstance.ephemeral() as copy:
        found = instance.fetch_materializations(key, limit=MOST_MEASUREMENTS)
        for record in reversed(found.records):
            copy.event_log_storage.store_event(record.event_log_entry)
        yield copy
