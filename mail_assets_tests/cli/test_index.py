"""`mail-assets index` and `reconcile`: an index is filled, promoted, compared, retired."""

import json
import re
from pathlib import Path

import psycopg
import pytest

from mail_assets.encoding.models import compute_fingerprint
from mail_assets.encoding.open import _open_remote
from mail_assets.indexes.vectors import index_spec, open_mail_bucket
from mail_assets.settings.settings import load_settings
from mail_assets.words.index import NAME
from mail_assets_tests.cli.conftest import Home, assert_fails, invoke
from mail_assets_tests.encoding.fake_openai import MODEL as REMOTE
from mail_assets_tests.encoding.fake_openai import fake_openai
from mail_assets_tests.openai.fake_server import KEY, serving

MODEL = "all-minilm-l6-v2"
STATIC, INT8, FP32 = (
    f"mail2-{MODEL}-{compute_fingerprint(MODEL, precision)}"
    for precision in ("static", "int8", "fp32")
)


@pytest.mark.slow
def test_index_is_filled_promoted_and_retired_under_search(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, home_dsn, model_cache)
    home.lines("backfill")
    header, live, words = home.lines("index", "list")
    assert header.split() == ["live", "kind", "index", "entries", "encoder", "precision", "note"]
    assert live.split() == ["*", "vectors", INT8, "15", MODEL, "int8"]
    assert words.split() == ["*", "words", NAME, "8", "bm25", "exact"]
    assert home.lines("reconcile") == [
        f"{INT8}: bucket 15, chunks 15, manifest 15, clean",
        f"{NAME}: bucket 8, messages 8, manifest 8, clean",
    ]

    [filled] = home.lines("index", "fill", MAIL_PRECISION="fp32")
    assert filled == f"{FP32}: 1 month, 15 vectors, 15 written, 0 deleted"
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
    [filled] = home.lines("index", "fill", MAIL_PRECISION="fp32")
    assert filled == f"{FP32}: 1 month, 15 vectors, 1 written, 0 deleted"
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
def test_unknown_index_exits_1(tmp_path: Path, home_dsn: str, model_cache: Path, act: str) -> None:
    result = Home(tmp_path, home_dsn, model_cache).run("index", act, "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("mail-assets: no index nobody was filled in lance:")
    assert result.stderr.endswith("there are: none\n")


def live_precisions(home: Home) -> list[tuple[str, bool]]:
    rows = map(json.loads, home.lines("index", "list", "--json"))
    return [(row["precision"], row["live"]) for row in rows if row["encoder"] == MODEL]


def count_kept(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from encoded_texts").fetchone()
    return int(row[0]) if row else 0


@pytest.mark.slow
def test_static_index_is_live_until_the_models_is_filled(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, home_dsn, model_cache)
    hinted = home.run("backfill", "--fast")
    assert hinted.exit_code == 0, hinted.output
    assert "mail-assets index fill --promote" in hinted.stderr
    assert live_precisions(home) == [("static", True)]

    search = ("search", "una jirafa alta", "--limit", "1", "--json")
    for mode in ("semantic", "hybrid"):
        [found] = json.loads(home.lines(*search, "--mode", mode)[0])["hits"]
        assert "jirafa" in found["chunks"][0]["text"]
    kept = count_kept(home_dsn)
    assert kept > 0
    lazy = json.loads(home.lines(*search, "--mode", "semantic")[0])["hits"][0]
    assert count_kept(home_dsn) == kept

    filled, promoted = home.lines("index", "fill", "--promote")
    assert filled == f"{INT8}: 1 month, 15 vectors, 15 written, 0 deleted"
    assert promoted == f"{INT8} is live, after {STATIC}"
    assert live_precisions(home) == [("static", False), ("int8", True)]
    assert count_kept(home_dsn) == 0
    exact = json.loads(home.lines(*search, "--mode", "semantic")[0])["hits"][0]
    assert exact["message_id"] == lazy["message_id"]
    assert exact["chunks"][0]["distance"] == pytest.approx(lazy["chunks"][0]["distance"], abs=1e-4)
    assert count_kept(home_dsn) == 0

    again = home.lines("index", "fill")
    assert again == [f"{INT8}: 1 month, 15 vectors, 0 written, 0 deleted"]
    refused = home.run("backfill", "--fast")
    assert_fails(refused, 2, "is live already")


def test_reconcile_does_not_need_the_server_of_the_encoder(
    tmp_path: Path, home_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, home_dsn, model_cache)
    with serving(fake_openai()) as server:
        home.environ |= {
            "MAIL_ENCODER": f"openai:{REMOTE}",
            "MAIL_ENCODER_URL": server.url,
            "MAIL_ENCODER_KEY": KEY,
        }
        home.lines("backfill")
    _open_remote.cache_clear()  # it knows the dimension
    clean, words = home.lines("reconcile")
    assert words.startswith("words-")
    assert words.endswith(", clean")
    assert clean.startswith(f"mail2-{REMOTE}-")
    assert clean.endswith(", clean")


@pytest.mark.parametrize("command", [("backfill",), ("index", "fill")])
def test_command_needs_its_model_before_it_begins(
    bare: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "models" / "gte-small").mkdir(parents=True)
    model = {"MAIL_ENCODER": "gte-small", "MAIL_MODEL_DIR": str(tmp_path / "models")}
    done = invoke(*command, env=bare | model)
    assert_fails(done, 1, "gte-small/tokenizer.json: expected sha256")
    assert "To get the file: hf download thenlper/gte-small tokenizer.json" in done.stderr
    assert not Path(bare["MAIL_HOME"]).exists()
