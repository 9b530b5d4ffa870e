"""Open a searcher: the mail database, the live index, the encoder of its vectors.

Index and encoder are opened by the first request that needs them, before its time is taken:
LanceDB alone takes a second to import, once per process.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mail_assets.encoding.open import open_encoder
from mail_assets.postgres.database import Database
from mail_assets.search.live_index import LiveIndex
from mail_assets.search.searcher import Searcher
from mail_assets.steps.index_lifecycle import live_encoder
from mail_assets.steps.vector_index import index_spec, open_mail_bucket
from mail_assets.vectors.index import VectorIndex

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder


@dataclass(frozen=True)
class SearchSettings:
    """What a searcher is opened with.

    `vectors` is the bucket's URL; `encoder` and `precision` are those of the configured index,
    which is searched while no index is live; `models` is the folder of prepared models; `languages`
    maps each list that is searched to its text search configuration.
    """

    database: Database
    vectors: str
    encoder: str
    precision: str
    models: Path
    languages: Mapping[str, str]


@contextlib.contextmanager
def open_searcher(settings: SearchSettings, *, pinned: bool = False) -> Iterator[Searcher]:
    """Yield a searcher over the live index, or the configured one while none is live.

    A `pinned` one searches the configured index, live or not.
    """
    with settings.database.connect("search") as connection:

        def find_live() -> tuple[str, str]:
            configured = (settings.encoder, settings.precision)
            return configured if pinned else live_encoder(connection, settings.vectors, *configured)

        open_once = functools.cache(
            functools.partial(open_index, settings.database, settings.vectors)
        )
        live = LiveIndex(
            find_live,
            open_index=open_once,
            open_encoder=functools.partial(_open_encoder_once, models=settings.models),
        )
        yield Searcher(connection, live, settings.languages)


def open_index(database: Database, vectors: str, encoder: str, precision: str) -> VectorIndex:
    """Return the index of an encoder in the bucket `vectors`; it may not exist yet.

    Raises:
        BucketError: the bucket cannot be opened.
    """
    return open_mail_bucket(database, vectors).index(index_spec(encoder, precision))


@functools.cache
def _open_encoder_once(name: str, precision: str, models: Path) -> "Encoder":
    return open_encoder(name, precision, models)
