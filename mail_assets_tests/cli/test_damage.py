"""`doctor --deep` finds every kind of damage, and names the command that repairs it."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import dagster as dg
import lancedb
import psycopg
import pytest

from mail_assets.defs.instance import open_instance
from mail_assets.defs.runs import PROCESS
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.settings.settings import load_settings
from mail_assets.store.embeddings import read_embeddings, read_fingerprint, write_embeddings
from mail_assets.store.open import open_store
from mail_assets.vectors import pgvector
from mail_assets_tests.broken_files import flip, overwrite, truncate
from mail_assets_tests.cli.conftest import Home, assert_fails
from mail_assets_tests.crane import NEW, OLD
from mail_assets_tests.databases import Databases
from mail_assets_tests.defs.test_runs import FAILED, add, partition
from mail_assets_tests.encoding.fake_openai import MODEL as REMOTE
from mail_assets_tests.encoding.fake_openai import fake_openai
from mail_assets_tests.kept_worlds import KeptHome
from mail_assets_tests.openai.fake_server import serving
from mail_assets_tests.processes.test_machine import child, ended_process
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import make_repository

__all__ = ["child", "ended_process"]  # fixtures

#: 2024-03-30, after the mail.
COMMITTED = 1_711_756_800

#: Changes that no trigger notices, by group.
ROWS: dict[str, list[str]] = {
    "missing": [
        f"delete from {table} where ctid = (select min(ctid) from {table})"
        for table in (
            *("messages", "archive_entries", "senders", "chunks", "threads", "vectors", "words"),
            *("thread_summaries", "mbox_archives", "patches", "commits", "commit_link_months"),
        )
    ],
    "altered": [
        "update messages set body_text = 'other' where ctid = (select min(ctid) from messages)",
        "update messages set subject = 'other' where ctid = (select max(ctid) from messages)",
        "update messages set search = '' where ctid = (select max(ctid) from messages)",
        "update archive_entries set archive_offset = 7 where ordinal = 1",
        "update senders set person = 'x' where ctid = (select max(ctid) from senders)",
        "update chunks set text_hash = text_hash || text_hash "
        "where ctid = (select min(ctid) from chunks)",
        "update chunks set spans = '{0,1}' where ctid = (select max(ctid) from chunks)",
        "update threads set parent_id = null, depth = 7 "
        "where ctid = (select max(ctid) from threads)",
        "update vectors set digest = '' where ctid = (select max(ctid) from vectors)",
        "update words set written = false where ctid = (select max(ctid) from words)",
    ],
    "altered records": [
        "update archive_entries set ending = 'x', outline = 'x' where ordinal = 1",
        "update mbox_archives set source = 'x', version = 'x', list_id = 'x.example.org'",
        "update commit_link_months set counts = '{}'",
        "update patches set title = 'other' where ctid = (select max(ctid) from patches)",
        "update commits set body = 'other' where ctid = (select max(ctid) from commits)",
        "update contested_texts set place = 7 where ctid = (select min(ctid) from contested_texts)",
        "update patch_states set state = 'open' where state = 'applied'",
    ],
    "missing outcomes": [
        "delete from patch_outcomes",
        "delete from commit_link_sources where ctid = (select min(ctid) from commit_link_sources)",
        "delete from contested_texts where ctid = (select min(ctid) from contested_texts)",
        "delete from thread_aliases",
    ],
    "a statement": [
        "update patch_outcomes set end_at = 7 where ctid = (select max(ctid) from patch_outcomes)"
    ],
    "extra links": [
        "insert into commit_links select repository, sha, 'gone@example.org', 'discussion', 9, '{}'"
        " from commits limit 1",
        "update commits set list = 'nowhere' where ctid = (select min(ctid) from commits)",
    ],
    "links while changes wait": [
        "delete from commit_link_sources where asset = 'messages'",
        "update commit_links set evidence = '{other}'",
    ],
    "chunk texts": ["update chunks set text = 'x' where ctid = (select max(ctid) from chunks)"],
    "sentences": ["update thread_summaries set sentences = '[]'"],
    "extra": ["insert into threads select 'x', 'x', null, null, 'x', 0, 0, true",
              "update thread_summaries set thread_id = 'x' "
              "where ctid = (select max(ctid) from thread_summaries)",
              "update messages set list = 'nowhere' where ctid = (select min(ctid) from messages)"],
    "schema": ["drop index messages_sent_at",
               "alter table messages disable trigger senders_replaced",
               "drop trigger senders_deleted on messages", "drop function note_senders cascade",
               "drop extension pg_trgm cascade"],
    "column": ["alter table chunks drop column tokens"],
    "a missing key": ["delete from patch_keys where ctid = (select max(ctid) from patch_keys)"],
    "an altered key": [
        "update patch_keys set at = at + 1 where ctid = (select max(ctid) from patch_keys)"
    ],
}  # fmt: skip

LISTS = "the database shows other lists than lists.toml"
#: Faults that a shallow doctor sees, and the problem that it names.
FAULTS: list[tuple[str, str]] = [
    ("delete from partitions where asset = 'messages'",
     "not made yet, or made from other archives: messages"),
    ("vectors", "the live vector index is missing"),
    ("words", "the live word index is missing"),
    ("update lists set published = false", LISTS),
    ("delete from lists", LISTS),
    ("update lists set language = 'german'", LISTS),
    ("insert into lists values ('secret', 'english', true, true)", LISTS),
]  # fmt: skip

#: A thread of two messages, which has a summary.
CONVERSATION = """\
From ann@example.org Thu Mar 28 10:00:00 2024
From: Ann <ann@example.org>
Subject: Boats
Date: Thu, 28 Mar 2024 10:00:00 +0000
Message-ID: <boats@example.org>

Shall the harbour count its boats by night?

From bob@example.org Thu Mar 28 11:00:00 2024
From: Bob <bob@example.org>
Subject: Re: Boats
Date: Thu, 28 Mar 2024 11:00:00 +0000
Message-ID: <yes@example.org>
In-Reply-To: <boats@example.org>

Yes, the harbour master has decided to count them at midnight.

"""

#: Tables whose loss is repaired by the command alone: of each group all at once.
TABLES = (
    ("messages", "vectors", "commit_links", "thread_summaries", "words", "patches"),
    ("chunks", "threads", "patch_series", "commit_link_months"),
    ("partitions", "patch_states", "commits"),
)


#: A version of a patch, whose diff is that of a commit, and two answers, one under a contested id.
VERSION = """\
From ann@example.org Fri Mar 29 10:00:00 2024
From: Ann Harbor <ann@example.org>
Subject: [PATCH{0}] crane: know the limit of the load
Date: Fri, 29 Mar 2024 1{1}:00:00 +0000
Message-ID: <v{1}@example.org>

The crane must know.
---
{2}
From bo@example.org Sat Mar 30 10:00:00 2024
From: Bo <bo@example.org>
Subject: Re: [PATCH] crane: know the limit of the load
Date: Sat, 30 Mar 2024 1{1}:00:00 +0000
Message-ID: <word@example.org>
In-Reply-To: <v{1}@example.org>

Applied version {1}, thanks.

From cy@example.org Sat Mar 30 18:00:00 2024
From: Cy <cy@example.org>
Subject: Re: [PATCH] crane: know the limit of the load
Date: Sat, 30 Mar 2024 1{1}:30:00 +0000
Message-ID: <thanks{1}@example.org>
In-Reply-To: <v{1}@example.org>

Pushed, thanks.

"""


def add_patches(home: Path, archive: Path, lists: Path) -> None:
    """Add two versions of a patch to an archive, and the repository with its commit to lists.

    Mail of March 2024 and no more: the list has ended, or doctor would call it silent.
    """
    made = make_repository(home / "crane.git")
    made.commit({"crane.c": OLD}, "first", committed=COMMITTED)
    sha = made.commit({"crane.c": NEW}, "crane: know the limit of the load", committed=COMMITTED)
    diff = git(made.folder, "show", "--format=", sha).decode()
    with archive.open("a") as file:
        file.write(VERSION.format("", 1, diff) + VERSION.format(" v2", 2, diff))
    repository = f'[repositories.crane]\nsource = "{made.folder}"\nlists = ["harbor-es"]\n'
    listed = lists.read_text().replace("[harbor-es]\n", "[harbor-es]\nended = true\n")
    lists.write_text(f"{listed}\n{repository}")


def files(home: Path, pattern: str) -> list[Path]:
    return sorted(path for path in home.glob(pattern) if path.is_file())


def remove_all(path: Path) -> None:
    """Remove every index of a table: the one that is in use is not known by its name."""
    shutil.rmtree(path.parent.parent)


Damage = Callable[[Path], None]
#: What happens at once to files that others are not made of: to the first and the last of each.
FILES: list[dict[str, list[Damage]]] = [
    {"store/archives/**/*": [truncate, Path.unlink], "words/*/data/*.lance": [overwrite]},
    {"store/archives/**/*": [flip], "vectors/*/data/*.lance": [Path.unlink]},
    {
        "store/embeddings/**/*.parquet": [truncate, overwrite],
        "words/*/_indices/*/*invert.lance": [truncate],
    },
    {"store/embeddings/**/*.parquet": [flip], "words/*/_indices/*/*": [remove_all]},
    {"words/*/data/*.lance": [truncate], "vectors/*/_versions/*": [overwrite]},
]


DROP_HNSW = """
do $$ begin execute (
    select string_agg(format('drop index %s', indexrelid::regclass), ';')
      from pg_index
      join pg_class on pg_class.oid = indexrelid
      join pg_am on pg_am.oid = relam
     where amname = 'hnsw'); end $$"""


class DamagedHome(Home):
    """A filled home, and the findings of `doctor --deep`."""

    def change(self, statement: str) -> None:
        with psycopg.connect(self.environ["MAIL_PG_DSN"]) as connection:
            if not statement.startswith(("alter", "drop")):
                connection.execute("set local session_replication_role = replica")
            connection.execute(statement)

    def findings(self, *, deep: bool = True) -> list[dict[str, str]]:
        result = self.run("doctor", "--json", *(["--deep"] if deep else []))
        assert "Traceback" not in result.output, result.output
        assert result.exit_code in (0, 1), result.output
        return [*map(json.loads, result.stdout.splitlines())]

    def mend(self, findings: list[dict[str, str]]) -> None:
        """Run the commands of the findings and doctor in turn, until it finds no faults."""
        seen: list[set[str]] = []
        while findings:
            remedies = {one["remedy"] for one in findings}
            assert remedies not in seen, findings
            seen.append(remedies)
            for remedy in dict.fromkeys(one["remedy"] for one in findings):
                self.follow(remedy)
            findings = self.findings()

    def follow(self, remedy: str) -> None:
        for command in remedy.split(" && "):
            words = shlex.split(command)
            given = dict(one.split("=", 1) for one in takewhile(lambda one: "=" in one, words))
            program, *arguments = words[len(given) :]
            if program == "mail-assets":
                self.lines(*arguments, **given)
            else:
                subprocess.run(command, shell=True, check=True, env=os.environ | self.environ)


@pytest.fixture(scope="module")
def filled(
    cluster: Cluster,
    home_databases: Databases,
    model_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[DamagedHome, KeptHome]:
    folder, dsn = tmp_path_factory.mktemp("damaged"), home_databases.take()
    home = DamagedHome(folder, dsn, model_cache)
    with (folder / "tricks" / "harbor-es.2024-03.mbox").open("a") as archive:
        archive.write(CONVERSATION)
    add_patches(folder, Path(archive.name), Path(home.environ["MAIL_LISTS"]))
    home.lines("backfill", "--fast")
    home.environ["MAIL_PRECISION"] = "static"
    assert not home.findings()
    return home, KeptHome(cluster, folder, dsn)


@pytest.fixture
def home(filled: tuple[DamagedHome, KeptHome]) -> Iterator[DamagedHome]:
    home, kept = filled
    with kept.copied() as dsn:
        home.move(dsn)
        yield home


@pytest.mark.slow
@pytest.mark.parametrize("group", ROWS)
def test_doctor_names_the_command_for_damaged_rows(home: DamagedHome, group: str) -> None:
    for statement in ROWS[group]:
        home.change(statement)
    found = home.findings()
    assert found
    home.mend(found)


@pytest.mark.slow
def test_doctor_finds_one_fault_and_its_command_mends_it(home: DamagedHome) -> None:
    clean = home.run("doctor")
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert clean.stderr.endswith("nothing found\n")
    for fault, problem in FAULTS:
        if " " in fault:
            home.change(fault)
        else:
            shutil.rmtree(Path(home.environ["MAIL_HOME"]) / fault)
        [finding] = home.findings(deep=False)
        assert finding["problem"] == problem
        home.follow(finding["remedy"])
        assert home.findings(deep=False) == [], fault


@pytest.mark.slow
def test_doctor_names_the_command_for_runs_that_ended_badly(
    home: DamagedHome, monkeypatch: pytest.MonkeyPatch, ended_process: str
) -> None:
    """A failed run of commits may have its rows already: its month is not behind."""
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    with open_instance(load_settings()) as instance:
        add(instance, FAILED, partition("harbor-es|2024-03"), assets=["commits"])
        killed = dg.DagsterRun(
            "any", status=dg.DagsterRunStatus.STARTED, tags={PROCESS: ended_process}
        )
        instance.add_run(killed)
    problems = ["the last run has failed", "the process of a run was killed"]
    found = home.findings(deep=False)
    assert [one["problem"] for one in found] == problems
    for one in found:
        home.follow(one["remedy"])
    assert home.findings(deep=False) == []


@pytest.mark.slow
def test_doctor_names_the_command_for_dropped_tables(home: DamagedHome) -> None:
    for tables in TABLES:
        for table in tables:
            home.change(f"drop table {table} cascade")
        found = home.findings()
        assert {*tables} == {one["where"] for one in found}
        home.mend(found)


@pytest.mark.slow
@pytest.mark.parametrize("group", FILES, ids=range(len(FILES)))
def test_doctor_names_the_command_for_damaged_files(
    home: DamagedHome, group: dict[str, list[Damage]]
) -> None:
    found: list[dict[str, str]] = []
    for pattern, damages in group.items():
        paths = files(Path(home.environ["MAIL_HOME"]), pattern)
        for damage, path in zip(damages, (paths[0], paths[-1]), strict=False):
            damage(path)
        before, found = found, home.findings()
        assert len(found) > len(before), pattern
    home.mend(found)


@pytest.mark.slow
def test_doctor_names_the_command_for_dropped_indexes(home: DamagedHome) -> None:
    folder = Path(home.environ["MAIL_HOME"]) / "words"
    [name] = [path.stem for path in folder.glob("*.lance")]
    table = lancedb.connect(folder).open_table(name)
    for index in table.list_indices():
        table.drop_index(index.name)
    [finding] = home.findings()
    assert "no index of" in finding["where"]
    home.mend([finding])


@pytest.mark.slow
@pytest.mark.skipif(not vector_cpu_ok(), reason="this CPU cannot run the embedded pgvector")
def test_doctor_names_the_command_for_a_dropped_hnsw_index(
    home: DamagedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "INDEX_ROWS", 1)
    monkeypatch.setitem(home.environ, "MAIL_VECTORS", "pgvector:")
    home.lines("backfill")
    assert not home.findings()
    home.change(DROP_HNSW)
    [finding] = home.findings()
    assert "no HNSW index" in finding["where"]
    home.mend([finding])


@pytest.mark.slow
def test_doctor_names_the_command_for_foreign_embeddings(home: DamagedHome) -> None:
    folder = Path(home.environ["MAIL_HOME"]) / "store"
    [path] = files(folder, "embeddings/**/*.parquet")
    store, key = open_store(folder), path.relative_to(folder).as_posix()
    fingerprint, vectors = read_fingerprint(store, key), read_embeddings(store, key)
    others = {hashlib.sha256(one).digest(): vector for one, vector in vectors.items()}
    write_embeddings(store, key, others, fingerprint)
    [finding] = home.findings()
    assert finding["problem"] == "damaged or missing: embeddings"
    home.mend([finding])


@pytest.mark.slow
@pytest.mark.parametrize("values", [{"list": "x"}, {"month": 7.0}, {"sender": "x"}])
def test_doctor_names_the_command_for_moved_entries(
    home: DamagedHome, values: dict[str, object]
) -> None:
    for kind in ("words", "vectors"):
        folder = Path(home.environ["MAIL_HOME"]) / kind
        [name] = [path.stem for path in folder.glob("*.lance")]
        lancedb.connect(folder).open_table(name).update(values=values)
    found = home.findings()
    assert len({one["problem"] for one in found}) == 2
    home.mend(found)


@pytest.mark.slow
def test_files_are_made_again_before_the_index(home: DamagedHome) -> None:
    folder = Path(home.environ["MAIL_HOME"])
    for pattern in ("store/embeddings/**/*.parquet", "store/archives/**/*"):
        truncate(files(folder, pattern)[0])
    for path in files(folder, "vectors/*/_versions/*"):
        overwrite(path)
    home.mend(home.findings())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "asset"),
    [("store/archives/**/*", "messages"), ("store/embeddings/**/*.parquet", "vectors")],
)
def test_failed_run_names_the_command_for_a_damaged_file(
    home: DamagedHome, pattern: str, asset: str
) -> None:
    truncate(files(Path(home.environ["MAIL_HOME"]), pattern)[0])
    failed = home.run("backfill", "--rebuild", "--only", asset)
    assert failed.exit_code == 1
    [finding] = home.findings(deep=False)
    assert finding["remedy"] in failed.stderr
    home.follow(finding["remedy"])
    assert home.findings() == []


@pytest.mark.slow
def test_embeddings_are_made_again_by_their_own_encoder(
    home: DamagedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(home.environ, "MAIL_PRECISION")
    before = home.findings()
    files(Path(home.environ["MAIL_HOME"]), "store/embeddings/**/*.parquet")[0].unlink()
    [finding] = [one for one in home.findings() if one not in before]
    assert "MAIL_PRECISION=static mail-assets backfill" in finding["remedy"]
    home.follow(finding["remedy"])
    assert home.findings() == before


@pytest.mark.slow
def test_doctor_names_a_live_index_of_an_unknown_encoder(home: DamagedHome) -> None:
    home.change(
        "insert into indexes select bucket, 'mail1-gone', 'gone', precision, 'f', made_at "
        "from indexes where encoder <> 'bm25'"
    )
    home.change("update live_indexes set name = 'mail1-gone' where bucket like '%vectors'")
    assert_fails(home.run("search", "boats"), 1, "was filled by encoder gone static")
    assert "harbor-es" in "".join(home.lines("stats"))
    truncate(files(Path(home.environ["MAIL_HOME"]), "store/archives/**/*")[0])
    found = home.findings()
    problems = {one["problem"] for one in found}
    assert "damaged or missing: archives" in problems
    assert any("encoder of the live vector index" in one for one in problems)
    home.mend(found)


@pytest.mark.slow
def test_doctor_continues_without_the_encoders_server(
    home: DamagedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    truncate(files(Path(home.environ["MAIL_HOME"]), "store/archives/**/*")[0])
    with serving(fake_openai()) as server:
        monkeypatch.setitem(home.environ, "MAIL_ENCODER", f"openai:{REMOTE}")
        monkeypatch.setitem(home.environ, "MAIL_ENCODER_URL", server.url)
        monkeypatch.setitem(home.environ, "MAIL_ENCODER_KEY", "wrong")
        monkeypatch.delitem(home.environ, "MAIL_PRECISION")
        found = {one["problem"]: one["where"] for one in home.findings()}
    [where] = [found[name] for name in found if name.startswith("not examined")]
    assert "401" in where
    assert "damaged or missing: archives" in found
