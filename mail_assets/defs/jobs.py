"""The jobs: the months, test queries, and what is done to all months and indexes together.

https://docs.dagster.io/guides/build/jobs

[archive_maintenance] The op that deletes former archives whose time (MAIL_KEEP_ARCHIVES) is over.

[index_maintenance] The ops that keep the indexes of vectors and words fast: LanceDB compacts and indexes here.

Never in a partition's own run: they lose to any concurrent write.
"""

from typing import Any

import dagster as dg

from mail_assets.defs.partitions import asset_key
from mail_assets.defs.pruning import prune_old
from mail_assets.defs.resources import (
    DatabaseResource,
    EncoderResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.defs.test_queries import serve_test_queries
from mail_assets.indexes.live import LifecycleError, follow_version
from mail_assets.indexes.mail_index import Filled
from mail_assets.operations.prune import KEEP_DAYS
from mail_assets.steps.fetch_archive import sweep_former_archives


@dg.op
def sweep_archives(context: dg.OpExecutionContext, workspace: WorkspaceResource) -> None:
    """Delete former archives whose time is over."""
    with workspace.open(context) as opened:
        context.add_output_metadata({"expired": sweep_former_archives(opened)})


class UpkeepConfig(dg.Config):
    """How thorough an upkeep is.

    `little_changed`: only what is due is done. To write an index anew takes 12 to 30 s for each
    100,000 entries, however few are new.
    """

    little_changed: bool = False


@dg.op
def maintain_index(
    context: dg.OpExecutionContext,
    config: UpkeepConfig,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> None:
    """Bring the search structures of the live index up to date, and those of the configured
    encoder's, where that is another one.
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


@dg.op
def maintain_words(
    context: dg.OpExecutionContext,
    config: UpkeepConfig,
    database: DatabaseResource,
    words: WordsResource,
) -> None:
    """Bring the search structures of the word index up to date, and make the index of another
    version live once it has every message.
    """
    mail_words = words.open()
    index = mail_words.index
    _maintain(context, config, index)
    with database.connect("maintain_words", context.run.run_id) as connection:
        if follow_version(connection, mail_words):
            context.log.info(f"search asks {mail_words.name} from now on")
    record = dg.TableRecord(index.describe())
    context.add_output_metadata({"indexes": dg.MetadataValue.table([record])})


def _maintain(context: dg.OpExecutionContext, config: UpkeepConfig, index: Filled[Any]) -> None:
    if config.little_changed and not index.needs_upkeep():
        context.log.info(f"little has changed in {index.label}: its upkeep is not due yet")
        return
    context.log.info(f"maintaining {index.label}")
    index.maintain()


#: Seconds after which Dagster ends a run that looks at a whole corpus: more is a hang.
_SIX_HOURS = {"dagster/max_runtime": str(6 * 3600)}

_CHECKED_BY_MONTH = (
    *("mbox_archives", "messages", "threads", "thread_summaries"),
    *("words", "chunks", "embeddings", "vectors"),
)

_THREADS = dg.AssetSelection.assets(asset_key("threads"), asset_key("thread_summaries"))

_QUALITY = dg.AssetSelection.assets(asset_key("search_quality"))

_AUDIT = dg.AssetSelection.assets(asset_key("search_audit"))

#: Everything from the archive to the vectors. Quality is measured by itself: one month says little
#: of it. Threads are built by themselves: once behind all months that have changed.
refresh_archives = dg.define_asset_job(
    "refresh_archives",
    selection=dg.AssetSelection.all() - _QUALITY - _AUDIT - _THREADS,
    description="Fetch the archive of a month and carry it through to the vector bucket.",
)

build_threads = dg.define_asset_job(
    "build_threads",
    selection=_THREADS,
    description="Build the threads that changed messages touch, summarize those that changed, and "
    "check the months of these.",
)

#: A backfill of it over all months goes on where it ended, month by month.
fill_index = dg.define_asset_job(
    "fill_index",
    selection=dg.AssetSelection.assets(asset_key("embeddings"), asset_key("vectors")),
    description="Encode the chunks of a month with the configured model and fill its index, beside "
    "the live one. Nothing is fetched, parsed or cut again.",
)


@dg.job(
    description="Compact and index the vector bucket, where the backend wants it, and the word "
    "index, and delete former archives whose time is over.",
    tags=_SIX_HOURS,
)
def maintain_vectors() -> None:
    """Keep the indexes fast and the archive store small."""
    maintain_index()
    maintain_words()
    sweep_archives()


@dg.job(
    description="Delete runs and events that nothing needs any more, embeddings of encoders and "
    f"texts that are gone, and counts of searches, all of them older than {KEEP_DAYS} days; former "
    "archives whose time is over, and versions of indexes that no search reads.",
    tags=_SIX_HOURS,
)
def prune_all() -> None:
    """Keep a home of years from growing."""
    prune_old()


@dg.job(description="Ask the live index test queries; the hits are in the op's metadata.")
def test_queries() -> None:
    """Ask test queries."""
    serve_test_queries()


#: Only the checks: listing a whole index takes minutes where it has millions of keys.
reconcile_vectors = dg.define_asset_job(
    "reconcile_vectors",
    selection=dg.AssetSelection.checks(
        *(
            dg.AssetCheckKey(asset_key(name), "reconciled")
            for name in ("vector_index", "word_index")
        )
    ),
    description="List the whole vector bucket and compare it with its manifest and the chunks, and "
    "the word index with its manifest and the messages.",
    tags=_SIX_HOURS,
)

#: Beside its asset a check looks at the months of the run, and the next day's run shows only its
#: own months again. Run without its asset it looks at every month that was materialized.
check_all_months = dg.define_asset_job(
    "check_all_months",
    selection=dg.AssetSelection.checks_for_assets(*map(asset_key, _CHECKED_BY_MONTH)),
    description="Run the checks of all that is made by months, and of the threads and their "
    "summaries, over every month that was materialized; nothing is materialized.",
    tags=_SIX_HOURS,
)

measure_quality = dg.define_asset_job(
    "measure_quality",
    selection=_QUALITY,
    description="Ask the judged queries of MAIL_QUALITY_SET, and compare with what was recorded.",
    tags=_SIX_HOURS,
)

count_searches = dg.define_asset_job(
    "count_searches",
    selection=_AUDIT,
    description="Take over the counts of searches that were served since, and show them.",
)

JOBS = (
    refresh_archives,
    build_threads,
    fill_index,
    maintain_vectors,
    prune_all,
    reconcile_vectors,
    check_all_months,
    test_queries,
    measure_quality,
    count_searches,
)
