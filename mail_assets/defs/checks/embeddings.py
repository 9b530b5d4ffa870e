"""The check of `embeddings`: one encoder made all vectors."""

import dagster as dg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import Verdict, check_months
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.store import StoreResource
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_fingerprint, file_key
from mail_assets.tables.partitions import Partition, read_state


@dg.asset_check(asset=asset_key("embeddings"), blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> dg.AssetCheckResult:
    """The vectors that are about to enter the index were all made by the encoder whose
    fingerprint its name carries.
    """
    files = store.open()
    with database.connect("checks", context.run.run_id) as connection:

        def look(month: ListMonth) -> Verdict:
            state = read_state(connection, Partition("embeddings", month))
            texts = int(state.counts["texts"]) if state else 0
            key = file_key(month, encoder.fingerprint)
            found = file_fingerprint(files, key) if files.exists(key) else "no file"
            wanted = encoder.fingerprint if texts else "no file"
            facts = {"texts": texts, "fingerprint": found, "wanted": wanted}
            return state is not None and found == wanted, facts

        return check_months(context, look, dg.AssetCheckSeverity.ERROR)
