"""The definitions of this project. Importing this module builds nothing and reads nothing.

https://docs.dagster.io/api/dagster/definitions
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from mail_assets.defs.assets.index import chunks, embeddings, vectors, words
from mail_assets.defs.assets.mail import (
    build_mbox_archives,
    build_messages,
    commit_health,
    commit_links,
    commits,
    mbox_source,
    patch_health,
    patch_series,
    patches,
    thread_summaries,
    threads,
)
from mail_assets.defs.assets.search import build_search_quality, search_audit
from mail_assets.defs.checks import index as index_checks
from mail_assets.defs.checks import mail as mail_checks
from mail_assets.defs.checks.months import build_months_made
from mail_assets.defs.jobs import JOBS, build_upkeep, refresh_commits
from mail_assets.defs.partitions import GROUP, MONTHLY, list_months
from mail_assets.defs.resources import (
    AlertsResource,
    ArchiveSourceResource,
    DatabaseResource,
    EncoderResource,
    RepositoriesResource,
    SearchResource,
    StoreResource,
    SummariesResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.defs.schedules import build_daily_refresh, build_weekly_upkeep
from mail_assets.defs.sensors import (
    build_failure_alerts,
    build_new_archives,
    build_new_commits,
    build_new_threads,
)
from mail_assets.encoding.models import REMOTE_SCHEME, compute_fingerprint
from mail_assets.files import keep_files_private
from mail_assets.settings.lists import LoadedLists
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.settings.variables import CHAT

_LOADED = dg.load_asset_checks_from_modules([index_checks, mail_checks])
#: Every check; the checks of commits are used only if lists.toml names a repository.
CHECKS = (*map(build_months_made, MONTHLY), *_LOADED)

#: (asset, check) -> True if a failure stops the run, for the checks that read the content of an
#: asset, without months_made.
CONTENT_CHECKS = {
    (spec.asset_key.path[-1], spec.name): spec.blocking
    for check in _LOADED
    for spec in check.check_specs
}


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions from the environment and lists.toml, at the start of a process."""
    keep_files_private()
    return build_defs(load_settings())


def build_defs(settings: Settings, **overrides: object) -> dg.Definitions:
    """Build the definitions; `overrides` replace resources by name, in tests."""
    partitions = list_months(tuple(settings.lists), settings.first_month, settings.last_month)
    assets, resources = build_assets(settings, partitions), build_resources(settings, **overrides)
    there = {
        key
        for one in assets
        for key in (one.keys if isinstance(one, dg.AssetsDefinition) else [one.key])
    }
    checks = [one for one in CHECKS if {key.asset_key for key in one.check_keys} <= there]
    upkeep = build_upkeep(dg.Definitions(assets=assets, asset_checks=checks, resources=resources))
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=[*JOBS, *([refresh_commits] if settings.repositories else []), upkeep],
        schedules=[build_daily_refresh(partitions), build_weekly_upkeep(upkeep)],
        sensors=[
            build_new_archives(
                partitions, loaded=LoadedLists(settings.lists_file, settings.languages)
            ),
            build_new_threads(partitions),
            *([build_new_commits(partitions)] if settings.repositories else []),
            build_failure_alerts(enabled=bool(settings.alert_url)),
        ],
        resources=resources,
        # a step process costs 1.5 CPU-seconds and loads the model again
        executor=dg.in_process_executor,
    )


def build_assets(
    settings: Settings, partitions: dg.MultiPartitionsDefinition
) -> Sequence[dg.AssetsDefinition | dg.AssetSpec]:
    """Build the assets, in the order of the chain, with what the settings decide."""
    encoder = "openai" if settings.encoder.startswith(REMOTE_SCHEME) else "onnx"
    fresh = freshness_policy(settings)
    decided: Mapping[str, Mapping[str, Any]] = {
        "mbox_archives": {"freshness_policy": fresh},
        "threads": {"freshness_policy": fresh},
        "thread_summaries": {"code_version": build_summaries(settings).fingerprint},
        "words": {"kinds": {bucket_kind(settings.words)}},
        "embeddings": {
            "kinds": {encoder, "parquet"},
            "code_version": compute_fingerprint(settings.encoder, settings.precision),
        },
        "vectors": {"kinds": {bucket_kind(settings.vectors)}},
    }

    def decide(spec: dg.AssetSpec) -> dg.AssetSpec:
        name = spec.key.path[-1]
        return spec.replace_attributes(
            group_name=GROUP,
            owners=settings.owners,
            partitions_def=spec.partitions_def and partitions,
            tags={**spec.tags, **({"by": "month"} if name in MONTHLY else {})},
            **decided.get(name, {}),
        )

    assets = (
        mbox_source,
        build_mbox_archives(settings.lists, settings.keep_archives),
        build_messages(settings.lists),
        *(threads, thread_summaries, words, patches, patch_series, patch_health),
        *((commits, commit_links, commit_health) if settings.repositories else ()),
        *(chunks, embeddings, vectors),
        build_search_quality(settings.quality_set),
        search_audit,
    )
    return dg.map_asset_specs(decide, assets)


def freshness_policy(settings: Settings) -> dg.FreshnessPolicy | None:
    """Return the freshness policy of assets that are refreshed daily; None if there is none.

    It warns after three quarters of the time. Lists with a `last_month` get no new mail.
    """
    if not settings.fresh_hours or settings.last_month:
        return None
    window = dt.timedelta(hours=settings.fresh_hours)
    return dg.FreshnessPolicy.time_window(fail_window=window, warn_window=window * 3 / 4)


def build_resources(settings: Settings, **overrides: object) -> Mapping[str, object]:
    """Build the resources. Secrets are EnvVars, so that the UI shows only the variables' names."""
    base = {
        "database": DatabaseResource(
            home=str(settings.home),
            dsn=dg.EnvVar("MAIL_PG_DSN") if settings.pg_dsn else "",
            forget_key=dg.EnvVar("MAIL_FORGET_KEY") if settings.forget_key.given else "",
        ),
        "store": StoreResource(url=settings.store),
        "archive_source": ArchiveSourceResource(
            sources={name: one.source for name, one in settings.lists.items()},
            starts={name: one.start for name, one in settings.lists.items()},
            redirect_hosts={name: [*one.redirect_hosts] for name, one in settings.lists.items()},
            cache=str(settings.source_cache),
            http_auth=dg.EnvVar("MAIL_HTTP_AUTH") if settings.http_auth else "",
        ),
        "repositories": build_repositories(settings),
        "summaries": build_summaries(settings),
        "alerts": AlertsResource(
            url=dg.EnvVar("MAIL_ALERT_URL") if settings.alert_url else "", ui_url=settings.ui_url
        ),
        "encoder": build_encoder(settings),
        **overrides,
    }
    words = WordsResource(url=settings.words)
    bucket = VectorBucketResource(url=settings.vectors, database=base["database"])
    return {
        **base,
        "workspace": WorkspaceResource(
            database=base["database"],
            store=base["store"],
            web_url=settings.web_url,
            jobs=settings.jobs,
        ),
        "vector_bucket": bucket,
        "words": words,
        "search": SearchResource(
            database=base["database"],
            vector_bucket=bucket,
            words=words,
            encoder=base["encoder"],
            languages=settings.languages,
        ),
        **overrides,
    }


def build_encoder(settings: Settings) -> EncoderResource:
    """Build the resource that cuts and encodes texts."""
    return EncoderResource(
        name=settings.encoder,
        precision=settings.precision,
        provider=settings.provider,
        cache=str(settings.model_cache),
    )


def build_repositories(settings: Settings) -> RepositoriesResource:
    """Build the resource that reads the repositories of lists.toml."""
    return RepositoriesResource(
        sources={name: one.source for name, one in settings.repositories.items()},
        branches={name: one.branch for name, one in settings.repositories.items()},
        lists={name: [*one.lists] for name, one in settings.repositories.items()},
        prefixes={name: one.prefix for name, one in settings.repositories.items()},
        cache=str(settings.source_cache),
        http_auth=dg.EnvVar("MAIL_HTTP_AUTH") if settings.http_auth else "",
    )


def build_summaries(settings: Settings) -> SummariesResource:
    """Build the resource that makes summaries of threads."""
    if settings.summaries.maker != CHAT or settings.chat is None:
        return SummariesResource()
    return SummariesResource(
        model=settings.chat.model,
        url=settings.chat.url,
        key=dg.EnvVar("MAIL_CHAT_KEY") if settings.chat_key else "",
        budget=settings.chat.budget,
        tokens=settings.summaries.tokens,
    )


def bucket_kind(url: str) -> str:
    """Return the kind of a bucket for the UI: the scheme of its URL, up to a "+"."""
    return url.partition(":")[0].partition("+")[0]
