"""The world of world.py, run by Dagster: definitions, an ephemeral instance, runs."""

import functools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from alembic.script import ScriptDirectory

from mail_assets.defs.definitions import build_defs
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import EncoderResource
from mail_assets.indexes.vectors import MailVectors, open_mail_vectors
from mail_assets.month import ListMonth
from mail_assets.postgres.embedded import Cluster
from mail_assets.settings.settings import Settings
from mail_assets.steps.fill_index import write_vectors
from mail_assets.tables.indexes import NewIndex, record_index, switch_live
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.databases import new_database
from mail_assets_tests.kept_worlds import KeptHome
from mail_assets_tests.world import FORGET_KEY, HARBOR, PROFILE, World

#: Assets without months.
WHOLE = {"threads", "thread_summaries", "search_quality", "search_audit"}
CHAIN = ("mbox_archives", "messages", "words", "patches", "chunks", "embeddings", "vectors")
#: Assets with rows of every message.
OF_ALL_MAIL = tuple(asset for asset in CHAIN if asset != "patches")


#: The last of Dagster's migrations, read once: new instances are marked with it.
read_migrations = functools.cache(ScriptDirectory.from_config)


class Made:
    """Definitions for some settings, and their jobs that tests have run."""

    def __init__(self, settings: Settings, encoder: EncoderResource) -> None:
        self.of = settings, encoder
        self.defs = build_defs(settings, encoder=encoder)
        self._jobs: dict[str, dg.JobDefinition] = {}

    def job(self, selection: dg.AssetSelection) -> dg.JobDefinition:
        name = repr(selection)
        if name not in self._jobs:
            graph = self.defs.get_repository_def().asset_graph
            job = dg.define_asset_job("some", selection=selection)
            self._jobs[name] = job.resolve(graph, dg.in_process_executor)
        return self._jobs[name]


#: The newest definitions, made once as in a code location.
_last: list[Made] = []


class DagsterWorld(World):
    """A world with its own definitions and the real model."""

    def __init__(
        self, home: Path, dsn: str, instance: dg.DagsterInstance, model_cache: Path
    ) -> None:
        super().__init__(home, dsn)
        self.instance = instance
        self.encoder_resource = EncoderResource(
            name=PROFILE, precision="int8", cache=str(model_cache)
        )

    @property
    def defs(self) -> dg.Definitions:
        return self._made.defs

    @property
    def _made(self) -> Made:
        of = self.settings(), self.encoder_resource
        if not _last or _last[0].of != of:
            _last[:] = [Made(*of)]
        return _last[0]

    def month(
        self,
        month: str,
        list_name: str = HARBOR,
        select: Sequence[str] = CHAIN,
        config: Mapping[str, Any] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Run assets, with their checks, for one month."""
        return self._job(select).execute_in_process(
            instance=self.instance,
            partition_key=key(month, list_name) if {*select} - WHOLE else None,
            run_config=dict(config or {}),
            raise_on_error=False,
        )

    def range(
        self, first: str, last: str, select: Sequence[str] = CHAIN
    ) -> dg.ExecuteInProcessResult:
        """Run assets, with their checks, for the keys from first to last."""
        return self._job(select).execute_in_process(
            instance=self.instance, tags=range_tags(first, last), raise_on_error=False
        )

    def check(self, check: dg.AssetChecksDefinition) -> dg.AssetCheckEvaluation:
        """Run one check without its asset, as the UI does, over all months."""
        result = self._made.job(dg.AssetSelection.checks(check)).execute_in_process(
            instance=self.instance, raise_on_error=False
        )
        [evaluation] = result.get_asset_check_evaluations()
        return evaluation

    def checks(self) -> dict[dg.AssetCheckKey, dg.AssetCheckEvaluation]:
        """Return the last evaluation of each check in the event log."""
        keys = [*self.defs.resolve_asset_graph().asset_check_keys]
        log = self.instance.event_log_storage
        found = {
            key: record.evaluation
            for key, record in log.get_latest_asset_check_execution_by_key(keys).items()
        }
        return {key: evaluation for key, evaluation in found.items() if evaluation}

    def recorded(self, result: dg.ExecuteInProcessResult, asset: str) -> dict[str, dict[str, Any]]:
        """Return partition -> metadata values of an asset, from the event log."""
        return {
            str(event.partition): {name: value.value for name, value in event.metadata.items()}
            for event in self._events(result, asset)
        }

    def version(self, result: dg.ExecuteInProcessResult, asset: str) -> str:
        """Return the data version that a run recorded for an asset, the same for all months."""
        tags = [event.tags or {} for event in self._events(result, asset)]
        [found] = {tag["dagster/data_version"] for tag in tags}
        return found

    def _events(
        self, result: dg.ExecuteInProcessResult, asset: str
    ) -> list[dg.AssetMaterialization]:
        """Return the events of an asset in a run; the result object lacks those of failed steps."""
        records = self.instance.get_records_for_run(
            result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        ).records
        events = [record.asset_materialization for record in records]
        return [event for event in events if event and event.asset_key == asset_key(asset)]

    def _job(self, select: Sequence[str]) -> dg.JobDefinition:
        keys = [asset_key(name) for name in select]
        assets = dg.AssetSelection.assets(*keys)
        return self._made.job(assets | dg.AssetSelection.checks_for_assets(*keys))

    def spoil_chunks(self) -> None:
        """Make every chunk be stored with another text, which a blocking check finds."""
        with self.connect() as connection:
            connection.execute(
                "create function spoil() returns trigger language plpgsql as"
                " $$ begin new.text := 'other'; return new; end $$;"
                "create trigger spoiled before insert on chunks"
                " for each row execute function spoil()"
            )


def key(month: str, list_name: str = HARBOR) -> str:
    """Return Dagster's key of a month."""
    return f"{list_name}|{month}"


def range_tags(first: str, last: str) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


@contextmanager
def dagster_world(
    home: Path, dsn: str, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    """Make an empty world with an ephemeral instance, and retries without delay."""
    monkeypatch.setenv("MAIL_PG_DSN", dsn)
    monkeypatch.setenv("MAIL_FORGET_KEY", FORGET_KEY)
    monkeypatch.setattr(ScriptDirectory, "from_config", read_migrations)
    at_once = dg.RetryPolicy(max_retries=2, delay=0)
    monkeypatch.setattr("mail_assets.defs.assets.mail.RETRIES", at_once)
    with dg.DagsterInstance.ephemeral(tempdir=str(home / "dagster")) as instance:
        yield DagsterWorld(home, dsn, instance, model_cache)


class KeptDagster:
    """A filled world; tests get copies of home, database, runs and event log.

    All copies have the same place and database name, so that definitions are made once.
    """

    def __init__(self, cluster: Cluster, world: DagsterWorld) -> None:
        self._folder, self._kept = world.home, KeptHome(cluster, world.home, world.dsn)
        self._log = [sqlite3.connect(":memory:") for _ in _databases(world.instance)]
        _copy(_databases(world.instance), self._log)

    @contextmanager
    def copied(self, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterWorld]:
        """Yield a copy, whose instance may be altered, too."""
        with (
            self._kept.copied(f"{self._folder.name}_copy") as dsn,
            dagster_world(self._folder, dsn, model_cache, monkeypatch) as world,
        ):
            _copy(self._log, _databases(world.instance))
            yield world


def kept_dagster(
    fill: Callable[[DagsterWorld, pytest.MonkeyPatch], object],
) -> Callable[..., KeptDagster]:
    """Return a fixture: a world that `fill` fills once for a module."""

    @pytest.fixture(scope="module")
    def kept(
        cluster: Cluster,
        mail_template: str,
        model_cache: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> KeptDagster:
        home, dsn = tmp_path_factory.mktemp("kept"), new_database(cluster, mail_template)
        with (
            pytest.MonkeyPatch.context() as patch,
            dagster_world(home, dsn, model_cache, patch) as made,
        ):
            fill(made, patch)
            return KeptDagster(cluster, made)

    return kept


def _databases(instance: dg.DagsterInstance) -> list[sqlite3.Connection]:
    """Return the databases of an ephemeral instance."""
    stores: list[Any] = [instance.run_storage, instance.event_log_storage]
    return [one._held_conn.connection.driver_connection for one in stores]


def _copy(databases: Sequence[sqlite3.Connection], to: Sequence[sqlite3.Connection]) -> None:
    for one, other in zip(databases, to, strict=True):
        one.backup(other)


def fill_live_index(world: World, month: str, list_name: str = HARBOR) -> MailVectors:
    """Fill another index than the configured one with a month, and make it live."""
    live = open_mail_vectors(open_bucket(world.bucket), world.bucket, PROFILE, "fp32")
    name = live.index.spec.name
    world.encoder.fingerprint = live.fingerprint
    world.embeddings(month, list_name)
    with world.workspace() as workspace:
        record = NewIndex(name, PROFILE, "fp32", live.fingerprint)
        record_index(workspace.connection, world.bucket, record)
        write_vectors(workspace, ListMonth(list_name, month), live)
        switch_live(workspace.connection, world.bucket, name, False, {})
    return live


def failure(result: dg.ExecuteInProcessResult) -> Any:
    [event] = result.get_step_failure_events()
    return event.step_failure_data.user_failure_data
