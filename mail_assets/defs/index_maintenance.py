"""The ops that keep the indexes of vectors and words fast: LanceDB compacts and indexes here.

Never in a partition's own run: they lose to any concurrent write.
"""

import dagster as dg

from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.defs.resources.words import WordsResource
from mail_assets.steps.index_lifecycle import LifecycleError
from mail_assets.steps.index_upkeep import Maintained
from mail_assets.steps.word_lifecycle import follow_version


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


def _maintain(context: dg.OpExecutionContext, config: UpkeepConfig, index: Maintained) -> None:
    if config.little_changed and not index.needs_upkeep():
        context.log.info(f"little has changed in {index.label}: its upkeep is not due yet")
        return
    context.log.info(f"maintaining {index.label}")
    index.maintain()
