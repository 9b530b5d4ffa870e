"""Wiring only: what Dagster loads. `defs` loads with no environment variable set.

https://docs.dagster.io/api/dagster/definitions
"""

from collections.abc import Mapping

import dagster as dg

from mail_assets.assets.archives import build_mbox_archives, mbox_source
from mail_assets.assets.chunks import build_chunks
from mail_assets.assets.embeddings import build_embeddings
from mail_assets.assets.messages import build_messages
from mail_assets.assets.search_quality import build_search_quality
from mail_assets.assets.threads import threads
from mail_assets.assets.vectors import build_vector_index, build_vectors
from mail_assets.checks import CHECKS
from mail_assets.console import console
from mail_assets.encoding.choice import fingerprint
from mail_assets.encoding.remote import SCHEME
from mail_assets.jobs import JOBS
from mail_assets.partitions import archives
from mail_assets.resources.archives import ArchiveSourceResource, StoreResource
from mail_assets.resources.database import DatabaseResource
from mail_assets.resources.encoder import EncoderResource
from mail_assets.resources.search import SearchResource
from mail_assets.resources.vector_bucket import VectorBucketResource
from mail_assets.schedules import build_daily_refresh, weekly_maintenance, weekly_quality
from mail_assets.sensors import build_new_archives
from mail_assets.settings import Settings, load_settings


def build_defs(settings: Settings | None = None, **overrides: object) -> dg.Definitions:
    """Build the definitions; `overrides` replace resources by name, in tests."""
    settings = settings or load_settings()
    names = tuple(settings.lists)
    lists = dict(settings.lists)
    partitions = archives(names, settings.first_month)
    return dg.Definitions(
        assets=[
            mbox_source,
            build_mbox_archives(partitions, lists),
            build_messages(partitions, lists),
            threads,
            build_chunks(partitions),
            build_embeddings(
                partitions,
                fingerprint(settings.encoder, settings.precision),
                encoder_kind(settings.encoder),
            ),
            build_vectors(partitions, bucket_kind(settings.vectors)),
            build_vector_index(bucket_kind(settings.vectors)),
            build_search_quality(settings.quality_set),
        ],
        asset_checks=CHECKS,
        jobs=JOBS,
        schedules=[
            build_daily_refresh(names, settings.first_month),
            weekly_maintenance,
            weekly_quality,
        ],
        sensors=[build_new_archives(names, settings.first_month)],
        resources={**build_resources(settings), **overrides},
        loggers={"console": console},
        # a step process costs 1.5 CPU-seconds and loads the model anew
        executor=dg.in_process_executor,
    )


def bucket_kind(url: str) -> str:
    """Return the kind of a bucket for the UI: its scheme, without what follows a "+"."""
    return url.partition(":")[0].partition("+")[0]


def encoder_kind(name: str) -> str:
    """Return the kind of an encoder for the UI: what computes, here or on a server."""
    return "openai" if name.startswith(SCHEME) else "onnx"


def build_resources(settings: Settings) -> Mapping[str, object]:
    """Build the resources. Secrets stay in the environment: the UI shows their names only."""
    home = str(settings.home)
    dsn = dg.EnvVar("MAIL_PG_DSN") if settings.pg_dsn else ""
    encoder = {
        "name": settings.encoder,
        "precision": settings.precision,
        "cache": str(settings.model_cache),
    }
    return {
        "database": DatabaseResource(home=home, dsn=dsn),
        "store": StoreResource(url=settings.store),
        "archive_source": ArchiveSourceResource(
            sources={name: one.source for name, one in settings.lists.items()},
            starts={name: one.start for name, one in settings.lists.items()},
            http_auth=dg.EnvVar("MAIL_HTTP_AUTH") if settings.http_auth else "",
        ),
        "encoder": EncoderResource(**encoder, provider=settings.provider),
        "vector_bucket": VectorBucketResource(url=settings.vectors, home=home, dsn=dsn),
        "search": SearchResource(
            home=home,
            dsn=dsn,
            vectors=settings.vectors,
            languages={name: one.language for name, one in settings.lists.items()},
            **encoder,
        ),
    }


defs = build_defs()
