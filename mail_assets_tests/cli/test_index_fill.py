"""A new archive is searchable by a static index; the model's own is filled behind it."""

import json
from pathlib import Path

import psycopg
import pytest

from mail_assets.encoding.open import compute_fingerprint
from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.conftest import new_database

MODEL = "all-minilm-l6-v2"
STATIC, INT8 = (
    f"mail2-{MODEL}-{compute_fingerprint(MODEL, precision)}" for precision in ("static", "int8")
)


def live_precisions(home: Home) -> list[tuple[str, bool]]:
    rows = map(json.loads, home.lines("index", "list", "--json"))
    return [(row["precision"], row["live"]) for row in rows if row["encoder"] == MODEL]


def count_kept(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from encoded_texts").fetchone()
    return int(row[0]) if row else 0


@pytest.mark.slow
def test_search_has_a_static_index_at_once_and_the_models_when_it_is_filled(
    tmp_path: Path, cluster: Cluster, model_cache: Path
) -> None:
    dsn = new_database(cluster)
    home = Home(tmp_path, dsn, model_cache)
    hinted = home.run("backfill", "--fast")
    assert hinted.exit_code == 0, hinted.output
    assert "mail-assets index fill --promote" in hinted.stderr
    assert live_precisions(home) == [("static", True)]

    search = ("search", "una jirafa alta", "--limit", "1", "--json")
    for mode in ("semantic", "hybrid"):
        [found] = json.loads(home.lines(*search, "--mode", mode)[0])["hits"]
        assert "jirafa" in found["chunks"][0]["text"]
    kept = count_kept(dsn)
    assert kept > 0
    lazy = json.loads(home.lines(*search, "--mode", "semantic")[0])["hits"][0]
    assert count_kept(dsn) == kept

    filled, promoted = home.lines("index", "fill", "--promote")
    assert filled == f"{INT8}: 1 month, 15 vectors, 15 written, 0 deleted"
    assert promoted == f"{INT8} is live, after {STATIC}"
    assert live_precisions(home) == [("static", False), ("int8", True)]
    assert count_kept(dsn) == 0
    exact = json.loads(home.lines(*search, "--mode", "semantic")[0])["hits"][0]
    assert exact["message_id"] == lazy["message_id"]
    assert exact["chunks"][0]["distance"] == pytest.approx(lazy["chunks"][0]["distance"], abs=1e-4)
    assert count_kept(dsn) == 0

    again = home.lines("index", "fill")
    assert again == [f"{INT8}: 1 month, 15 vectors, 0 written, 0 deleted"]
    refused = home.run("backfill", "--fast")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "is live already" in refused.stderr
