"""The sample lists with their vectors in the mail database, and the functions over them."""

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pytest

from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.encoding.models import compute_fingerprint
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.search.open import open_index
from mail_assets.settings.settings import Settings
from mail_assets.sql_functions import install_functions
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.vectors.index import VectorIndex
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus, index_everything


@pytest.fixture(scope="session")
def stored(corpus: Corpus, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The sample lists, their vectors in the mail database."""
    if not vector_cpu_ok():
        pytest.skip("the embedded server's pgvector does not run on this processor")
    environ = corpus.environ | {
        "MAIL_HOME": str(tmp_path_factory.mktemp("sql")),
        "MAIL_PG_DSN": new_database(cluster),
        "MAIL_STORE": corpus.settings.store,  # its archives and embeddings: nothing is encoded
        "MAIL_VECTORS": "pgvector:",
    }
    stored = Corpus(environ)
    index_everything(stored.settings)
    return stored


@pytest.fixture(scope="session")
def db(stored: Corpus) -> Iterator[psycopg.Connection]:
    s = stored.settings
    with psycopg.connect(s.pg_dsn, autocommit=True) as connection:
        name = open_stored(s).spec.name
        print_ = compute_fingerprint(s.encoder, s.precision)
        record = NewIndex(name, s.encoder, s.precision, print_)
        record_index(connection, s.vectors, record)
        make_first_live(connection, s.vectors, name)
        assert install_functions(connection, stored.settings.languages)
        show_lists(connection, EVERY_LIST)
        yield connection


def open_stored(s: Settings) -> VectorIndex:
    return open_index(s.database, s.vectors, s.encoder, s.precision)


@pytest.fixture(scope="session")
def index(stored: Corpus) -> VectorIndex:
    return open_stored(stored.settings)


@pytest.fixture(scope="session")
def encoder(stored: Corpus) -> LocalEncoder:
    s = stored.settings
    return open_local_encoder(s.encoder, s.precision, s.model_cache)


def vector_text(vector: Iterable[float]) -> str:
    return f"[{','.join(str(float(x)) for x in vector)}]"


def call(db: psycopg.Connection, function: str, **arguments: Any) -> list[dict[str, Any]]:
    """Call a function by the names of its arguments, as RPC does; strings have no type yet."""
    names = ", ".join(f"{name} => %({name})s" for name in arguments)
    cursor = db.execute(f"select * from {function}({names})".encode(), arguments)
    columns = [column.name for column in cursor.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in cursor]
