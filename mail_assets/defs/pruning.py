"""Deleting what is old and not needed: the op, and the same from a terminal.

What of each kind is needed: defs/history.py, steps/prune_files.py, lance/pruning.py.
"""

import datetime as dt
from dataclasses import dataclass

import dagster as dg
from pydantic import Field

from mail_assets.defs.history import prune_history
from mail_assets.defs.instance import open_instance
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.defs.resources.words import WordsResource
from mail_assets.defs.resources.workspace import WorkspaceResource
from mail_assets.encoding.open import compute_fingerprint
from mail_assets.lance.pruning import prune_versions
from mail_assets.settings.environment import Settings
from mail_assets.steps.prune_files import prune_archives, prune_embeddings
from mail_assets.steps.pruned import KEEP_DAYS, LEAST_DAYS, Pruned
from mail_assets.store.open import open_store
from mail_assets.tables.encoded_texts import sweep_encoded
from mail_assets.tables.search_audit import drop_searches
from mail_assets.vectors.errors import VectorError
from mail_assets.words.lance.maintenance import clean_table
from mail_assets.workspace import Log, Workspace


class PruneConfig(dg.Config):
    """How long things are kept."""

    keep_days: int = Field(
        default=KEEP_DAYS, ge=LEAST_DAYS, description="days that everything is kept"
    )


@dataclass(frozen=True)
class PrunePlan:
    """For how many days everything is kept, and whether anything is deleted."""

    keep_days: int = KEEP_DAYS
    dry_run: bool = False

    @property
    def before(self) -> dt.datetime:
        """Until when things are old."""
        return dt.datetime.now(dt.UTC) - dt.timedelta(days=self.keep_days)


def prune_home(settings: Settings, plan: PrunePlan, log: Log) -> list[Pruned]:
    """Delete what is old and not needed in the home of the settings; see prune."""
    with (
        settings.database.connect("prune") as connection,
        open_instance(settings) as instance,
    ):
        workspace = Workspace(connection, open_store(settings.store), log, settings.forget_key)
        urls = (settings.vectors, settings.words)
        fingerprint = compute_fingerprint(settings.encoder, settings.precision)
        return prune(workspace, instance, urls, fingerprint, plan)


def prune(
    workspace: Workspace,
    instance: dg.DagsterInstance,
    urls: tuple[str, ...],
    fingerprint: str,
    plan: PrunePlan,
) -> list[Pruned]:
    """Delete what is old and not needed; return what went, or would go.

    `urls` are those of the indexes, `fingerprint` that of the configured encoder.

    Raises:
        HistoryError, StoreError, VectorError, WordsError: what is left is deleted by the next time.
    """
    dry_run = plan.dry_run
    found = prune_history(instance, plan.before, dry_run=dry_run)
    found.append(prune_archives(workspace, dry_run=dry_run))
    found += prune_embeddings(workspace, fingerprint, plan.before, dry_run=dry_run)
    counts = drop_searches(workspace.connection, plan.before, dry_run=dry_run)
    found.append(Pruned("counted searches", counts, None))
    if not dry_run:
        sweep_encoded(workspace.connection)
    lance = [url for url in urls if url.startswith("lance:")]
    versions = [prune_versions(url, clean_table, VectorError, dry_run=dry_run) for url in lance]
    sizes = [one.bytes for one in versions]
    freed = None if None in sizes else sum(size or 0 for size in sizes)
    return [*found, Pruned("old versions of indexes", sum(one.versions for one in versions), freed)]


@dg.op
def prune_old(
    context: dg.OpExecutionContext,
    config: PruneConfig,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
    words: WordsResource,
) -> None:
    """Delete what is older than `keep_days` and not needed; former archives after
    MAIL_KEEP_ARCHIVES days, versions of indexes once no search reads them.
    """
    urls = (vector_bucket.url, words.url)
    plan = PrunePlan(config.keep_days)
    with workspace.open(context) as opened:
        found = prune(opened, context.instance, urls, encoder.fingerprint, plan)
    records = [dg.TableRecord({**one._asdict(), "bytes": one.bytes or 0}) for one in found]
    context.add_output_metadata({"pruned": dg.MetadataValue.table(records)})
