"""The assets of the two indexes: words, chunks, embeddings and vectors.

https://docs.dagster.io/guides/build/assets
"""

from functools import partial

import dagster as dg

from mail_assets.defs.assets.months import (
    RebuildConfig,
    mail_asset,
    make_months,
    materialize_table,
)
from mail_assets.defs.partitions import months_of_run
from mail_assets.defs.resources import (
    EncoderResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.encoding.models import LocalModel
from mail_assets.indexes.encoder_probe import ProbedEncoder
from mail_assets.indexes.names import VECTORS_VERSION
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.fill_index import write_vectors, write_words
from mail_assets.store.embeddings import file_key
from mail_assets.tables.chunks import count_unencoded
from mail_assets.tables.partitions import Counts
from mail_assets.text.chunk_sizes import CHUNKER_VERSION
from mail_assets.words.index import WORDS_VERSION


# higher priority than chunks and embeddings: full text can be searched while those are made
@mail_asset(
    "messages",
    layer="index",
    monthly=True,
    code_version=str(WORDS_VERSION),
    op_tags={"dagster/priority": "1"},
)
def words(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    words: WordsResource,
) -> dg.MaterializeResult:
    """One document per message in the word index: the lexemes of subject, new text and names,
    and the fields for filters. Keys in the index = keys in the manifest = messages.
    """
    mail_words = words.open().for_run(months_of_run(context))
    place = {"dagster/table_name": mail_words.manifest.index_name, "index": mail_words.name}
    with workspace.open(context) as opened:
        write = partial(write_words, opened, mail_words=mail_words, rebuild=config.rebuild)
        return materialize_table(context, opened, write, rows="documents", about=place)


@mail_asset(
    "messages", layer="text", monthly=True, kinds={"postgres"}, code_version=CHUNKER_VERSION
)
def chunks(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
) -> dg.MaterializeResult:
    """The new text of each message, cut at paragraphs, sentences and lines. `spans` point
    into messages.body_text, and the text of a chunk is exactly those spans.
    """
    tokenizer, sizes = encoder.tokenizer(), encoder.sizes
    with workspace.open(context) as opened:
        cut = partial(cut_chunks, opened, tokenizer=tokenizer, sizes=sizes, rebuild=config.rebuild)
        return materialize_table(context, opened, cut, rows="chunks")


@mail_asset("chunks", layer="index", monthly=True)
def embeddings(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.MaterializeResult:
    """One vector per distinct text of a month and encoder fingerprint, as Parquet in the store.
    A text that any month has encoded before is never encoded again.
    """
    vector_bucket.check()  # now, not after hours of encoding
    used = encoder.tokens_used
    with workspace.open(context) as opened:
        # not for a server: each text costs money, and it may change its model silently
        local = isinstance(encoder.model, LocalModel)
        probed = ProbedEncoder(encoder, opened.connection, opened.log) if local else encoder
        made = make_months(
            context,
            lambda month: encode_chunks(opened, month, probed, rebuild=config.rebuild),
            rows="texts",
            describe=lambda month: {
                "dagster/uri": opened.store.url(file_key(month, encoder.fingerprint))
            },
        )
        left = count_unencoded(opened.connection, encoder.fingerprint)
    return made.record(
        {
            "dagster/table_name": f"embeddings.{encoder.fingerprint}",
            **_remaining(left, made.counts),
            "model": encoder.name,
            "precision": encoder.precision,
            "provider": encoder.provider,
            "fingerprint": encoder.fingerprint,
            "endpoint_tokens": encoder.tokens_used - used,
        }
    )


def _remaining(left: int, counts: Counts) -> Counts:
    """Return the number of unencoded chunks, and the hours for them at this run's rate, if any."""
    if not counts.get("encoded"):
        return {"left": left}
    return {
        "left": left,
        "hours_left": round(left * counts["seconds"] / counts["encoded"] / 3600, 2),
    }


# depends on messages for sender, date and subject, which embeddings do not have
@mail_asset("messages", "embeddings", layer="index", monthly=True, code_version=VECTORS_VERSION)
def vectors(
    context: dg.AssetExecutionContext,
    config: RebuildConfig,
    workspace: WorkspaceResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.MaterializeResult:
    """One vector per chunk in the vector bucket, in an index whose name has the
    encoder's fingerprint. Keys in the bucket = keys in the manifest = chunks.
    """
    index = vector_bucket.open_index(encoder).for_run(months_of_run(context))
    place = {"dagster/table_name": index.manifest.index_name, "index": index.name}
    with workspace.open(context) as opened:
        write = partial(write_vectors, opened, mail_vectors=index, rebuild=config.rebuild)
        return materialize_table(context, opened, write, rows="chunks", about=place)
