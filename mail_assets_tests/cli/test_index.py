"""`mail-assets index`: the life of an index from the command line, with `reconcile` beside it."""

import json
import re
from pathlib import Path

import pytest

from mail_assets.encoding.open import compute_fingerprint
from mail_assets.indexes.vectors import index_spec, open_mail_bucket
from mail_assets.postgres.embedded import Cluster
from mail_assets.settings.settings import load_settings
from mail_assets.words.index import NAME
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.conftest import new_database

MODEL = "all-minilm-l6-v2"
INT8, FP32 = (
    f"mail2-{MODEL}-{compute_fingerprint(MODEL, precision)}" for precision in ("int8", "fp32")
)


@pytest.mark.slow
def test_an_index_is_built_promoted_and_retired_and_search_goes_on(
    tmp_path: Path, cluster: Cluster, model_cache: Path
) -> None:
    home = Home(tmp_path, new_database(cluster), model_cache)
    home.lines("backfill")
    header, live, words = home.lines("index", "list")
    assert header.split() == ["live", "kind", "index", "entries", "encoder", "precision", "note"]
    assert live.split() == ["*", "vectors", INT8, "15", MODEL, "int8"]
    assert words.split() == ["*", "words", NAME, "8", "bm25", "exact"]
    assert home.lines("reconcile") == [
        f"{INT8}: bucket 15, chunks 15, manifest 15, clean",
        f"{NAME}: bucket 8, messages 8, manifest 8, clean",
    ]

    [built] = home.lines("index", "build", MAIL_PRECISION="fp32")
    assert built == f"{FP32}: 1 month, 15 vectors, 15 written, 0 deleted"
    assert [line[0] for line in home.lines("index", "list")] == ["l", "*", " ", "*"]
    refused = home.run("index", "retire", INT8)
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"mail-assets: index {INT8} is live: promote another one first, then retire it\n",
    )
    search = ("search", "una jirafa alta", "--mode", "semantic", "--limit", "1", "--json")
    before = json.loads(home.lines(*search)[0])["hits"][0]

    promoted = home.run("index", "promote", FP32, MAIL_QUALITY_SET=write_judged(tmp_path))
    assert promoted.stdout == f"{FP32} is live, after {INT8}\n"
    reported = r"this index: hybrid nDCG@10 (1\.0|0\.9)\S+ .*\nthe live one: .* over 1 queries\n"
    assert re.match(reported, promoted.stderr)
    assert "set MAIL_ENCODER=all-minilm-l6-v2 MAIL_PRECISION=fp32 for them too" in promoted.stderr
    after = json.loads(home.lines(*search)[0])["hits"][0]
    assert after["message_id"] == before["message_id"]
    assert after["score"] != before["score"]
    assert home.lines("index", "retire", INT8) == [f"{INT8} is deleted"]
    assert json.loads(home.lines(*search)[0])["hits"][0] == after
    rows = [json.loads(line) for line in home.lines("index", "list", "--json")]
    assert [(row["kind"], row["name"], row["live"], row["written"]) for row in rows] == [
        ("vectors", FP32, True, 15),
        ("words", NAME, True, 8),
    ]
    refused = home.run("index", "retire", NAME)
    assert (refused.exit_code, "is live" in refused.stderr) == (1, True)

    settings = load_settings(home.environ | {"MAIL_PRECISION": "fp32"})
    bucket = open_mail_bucket(settings.database, settings.vectors)
    index = bucket.index(index_spec(MODEL, "fp32"))
    lost = min(index.keys())
    index.delete([lost])
    found = home.run("reconcile", "--repair", "--json", MAIL_PRECISION="fp32")
    assert found.exit_code == 1
    reported, words = map(json.loads, found.stdout.splitlines())
    assert (reported["missing"], reported["faults"][0]["examples"]) == (1, [lost])
    assert words["clean"]
    assert "`mail-assets backfill` writes what is missing" in found.stderr
    [built] = home.lines("index", "build", MAIL_PRECISION="fp32")
    assert built == f"{FP32}: 1 month, 15 vectors, 1 written, 0 deleted"
    assert all(x.endswith("clean") for x in home.lines("reconcile", MAIL_PRECISION="fp32"))


def write_judged(home: Path) -> str:
    """Write a judged set whose query both indexes answer, and return its folder."""
    folder = home / "judged"
    folder.mkdir()
    right = ("names@example.es", "longest@example.es", "stems@example.es")
    (folder / "queries.jsonl").write_text(
        '{"_id": "all", "text": "heapam.c or jirafa or trabajadores"}'
    )
    (folder / "qrels.tsv").write_text("".join(f"all\t{one}\t1\n" for one in right))
    return str(folder)


@pytest.mark.parametrize("act", ["promote", "retire"])
def test_an_unknown_index_is_a_line_and_exit_code_1(
    tmp_path: Path, mail_dsn: str, model_cache: Path, act: str
) -> None:
    result = Home(tmp_path, mail_dsn, model_cache).run("index", act, "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("mail-assets: no index nobody was filled in lance:")
    assert result.stderr.endswith("there are: none\n")
