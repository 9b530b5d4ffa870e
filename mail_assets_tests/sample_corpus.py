"""The sample lists and a small hostile one, indexed by the real steps with the real model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.indexes.vectors import open_mail_bucket, open_mail_vectors
from mail_assets.indexes.words import open_mail_words
from mail_assets.month import ListMonth
from mail_assets.search.open import SearchSettings
from mail_assets.search.response import Response
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.fill_index import write_vectors, write_words
from mail_assets.steps.load_messages import load_messages
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.store.open import open_store
from mail_assets.summaries.extractive import ExtractiveMaker
from mail_assets.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parent.parent

ROOT = "20240304090533.GE9223@solheim.example.org"
QUERY = "why do jobs run twice after a worker pauses"

#: A text of about three chunks; the searched words are in the last one.
LONG = "\n\n".join(
    f"Párrafo {n}: el barco cruza la bahía con la marea alta y nadie mira el reloj. " * 6
    for n in range(8)
)

#: (Message-ID, sender, day of March 2024, subject, body) of mail that the samples lack.
TRICKS = [
    ("twice@example.es", "ana@example.es", 3, "Primera", "El primer texto habla de ballenas."),
    ("twice@example.es", "ana@example.es", 20, "Segunda", "Un texto distinto sobre tortugas."),
    ("names@example.es", "ana@example.es", 4, "Nombres",
     "Mira pg_catalog.pg_class y src/backend/access/heap/heapam.c, la parte de poda."),
    ("stems@example.es", "luis@example.es", 5, "Colas",
     "Los trabajadores estaban ejecutando las tareas repetidamente."),
    ("longest@example.es", f"{'l' * 64}@{'d' * 40}.example.es", 6, "Largo", "Una jirafa alta."),
    ("quoted@example.es", "luis@example.es", 7, "Re: ornitorrinco", "> solo una cita\n> y otra\n"),
    ("long@example.es", "luis@example.es", 9, "Puerto",
     f"{LONG}\n\nAl final, src/zoo/cebra.c compra cebollas en el mercado."),
    ("hostile@example.es", "luis@example.es", 8, "'; drop table messages; --",
     "Robert'); DROP TABLE messages;-- & | ! :* <-> 'x' \\ \"y\" % _ 🦆"),
]  # fmt: skip


@dataclass(frozen=True)
class Corpus:
    """An indexed corpus, and the environment for its commands."""

    environ: dict[str, str] = field(repr=False)

    @property
    def settings(self) -> Settings:
        return load_settings(self.environ)

    @property
    def search_settings(self) -> SearchSettings:
        return self.settings.search


def corpus_at(home: Path, dsn: str, models: Path) -> Corpus:
    """Return the corpus of a lists.toml in a folder, for a database; nothing is indexed."""
    return Corpus(
        {
            "MAIL_HOME": str(home),
            "MAIL_LISTS": str(home / "lists.toml"),
            "MAIL_PG_DSN": dsn,
            "MAIL_MODEL_DIR": str(models),
        }
    )


def write_tricks(folder: Path) -> None:
    folder.mkdir()
    pieces = []
    for message_id, sender, day, subject, body in TRICKS:
        pieces.append(
            f"From {sender} Fri Mar {day:2} 10:00:00 2024\n"
            f"From: Someone <{sender}>\nTo: harbor-es@lists.example.org\n"
            f"Subject: {subject}\nDate: {day} Mar 2024 10:00:00 +0000\n"
            f"Message-ID: <{message_id}>\nContent-Type: text/plain; charset=utf-8\n\n{body}\n\n"
        )
    (folder / "harbor-es.2024-03.mbox").write_text("".join(pieces), encoding="utf-8")


def write_lists(path: Path) -> None:
    samples = REPOSITORY / "samples"
    path.write_text(
        "".join(
            f'[{name}]\nsource = "{folder}"\nlanguage = "{language}"\n'
            for name, folder, language in (
                ("harbor-dev", samples / "harbor-dev", "english"),
                ("harbor-users", samples / "harbor-users", "english"),
                ("harbor-es", "tricks", "spanish"),
            )
        )
    )


def index_everything(settings: Settings) -> None:
    """Run every step for every month, as the assets do."""
    encoder = open_local_encoder(settings.encoder, settings.precision, settings.model_cache)
    bucket = open_mail_bucket(settings.database, settings.vectors)
    index = open_mail_vectors(bucket, settings.vectors, settings.encoder, settings.precision)
    words = open_mail_words(settings.words)

    def log(line: str) -> None:
        pass

    with settings.database.connect("test") as connection:
        workspace = Workspace(connection, open_store(settings.store), log)
        for one in settings.lists.values():
            source = open_source(
                one.name,
                one.source,
                start=one.start,
                options=HttpOptions(),
                cache=settings.source_cache,
            )
            for month in (ListMonth(one.name, "2024-03"), ListMonth(one.name, "2024-04")):
                fetch_archive(workspace, month, source, FetchOptions(one.dialect))
                load_messages(workspace, month, one.defaults)
                cut_chunks(workspace, month, encoder.tokenizer, encoder.model.sizes)
                encode_chunks(workspace, month, encoder)
                write_vectors(workspace, month, index)
                write_words(workspace, month, words)
        build_threads(connection, log)
        summarize_threads(connection, ExtractiveMaker(), log)
    words.index.maintain()  # as after a backfill: scores are exact when all is indexed


def build_corpus(home: Path, dsn: str, models: Path) -> Corpus:
    """Index everything below a folder, in an empty database."""
    write_tricks(home / "tricks")
    write_lists(home / "lists.toml")
    built = corpus_at(home, dsn, models)
    index_everything(built.settings)
    return built


def small_corpus(home: Path, dsn: str, models: Path) -> Corpus:
    """Return the small hostile list in a folder, for an empty database; nothing is indexed."""
    write_tricks(home / "tricks")
    (home / "lists.toml").write_text('[harbor-es]\nsource = "tricks"\nlanguage = "spanish"\n')
    return corpus_at(home, dsn, models)


#: Searches by the fields of Request: `search("query", mode="fulltext")`.
Search = Callable[..., Response]


def corpus_of(texts: Mapping[str, str], home: Path, dsn: str, models: Path) -> Corpus:
    """Return a corpus of one month; each text is a message, with its key as id and subject."""
    pieces = [
        f"From ann@example.org Fri Mar  1 10:00:00 2024\nFrom: Ann <ann@example.org>\n"
        f"Subject: {name}\nDate: 1 Mar 2024 10:00:{second:02} +0000\n"
        f"Message-ID: <{name}@example.org>\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\n"
        for second, (name, text) in enumerate(texts.items())
    ]
    (home / "mail").mkdir()
    (home / "mail" / "lists.2024-03.mbox").write_text("".join(pieces), encoding="utf-8")
    (home / "lists.toml").write_text('[lists]\nsource = "mail"\nlanguage = "english"\n')
    built = corpus_at(home, dsn, models)
    index_everything(built.settings)
    return built


def ids(response: Response) -> list[str]:
    return [hit.message_id for hit in response.hits]
