"""The check of `word_index`: the index holds the keys of the messages and no others.

The documents of single months are checked in words.py.
"""

import dagster as dg

from mail_assets.defs.checks.reconciliation import no_live_index, reconciliation_result
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, WordsResource
from mail_assets.steps.reconcile_index import reconcile
from mail_assets.tables.indexes import live_index


@dg.asset_check(
    asset=asset_key("word_index"),
    name="reconciled",
    blocking=True,
    # in a run of all assets it waits for the months that the run writes
    additional_deps=[asset_key("words")],
)
def words_reconciled(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, words: WordsResource
) -> dg.AssetCheckResult:
    """The word index holds the keys of the messages, each once, and nothing else. To repair it:
    `mail-assets reconcile --repair`.
    """
    with database.connect("checks", context.run.run_id) as connection:
        if live_index(connection, words.url) is None:
            return no_live_index(words.url)
        return reconciliation_result(reconcile(connection, words.open()))
