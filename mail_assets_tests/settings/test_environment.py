"""All settings at once: defaults that need nothing, and what is set is taken."""

from pathlib import Path

import pytest

from mail_assets.settings.settings import load_settings
from mail_assets_tests.conftest import REPOSITORY

SECRET = "s3cr3t"


def test_without_an_environment_everything_has_a_default() -> None:
    settings = load_settings({})
    assert settings.home == REPOSITORY / "var"
    assert settings.store == str(REPOSITORY / "var" / "store")
    assert settings.vectors == f"lance:{REPOSITORY / 'var' / 'vectors'}"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "int8")
    assert (settings.pg_dsn, settings.dagster_url, settings.http_auth) == ("", "", "")
    assert settings.dagster_home == REPOSITORY / "var" / "dagster"
    assert [*settings.lists] == ["harbor-dev", "harbor-users"]


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    names = ("HOME", "LISTS", "STORE", "VECTORS", "ENCODER", "PRECISION", "PG_DSN", "HTTP_AUTH")
    assert load_settings({f"MAIL_{name}": "" for name in names}) == load_settings({})


def test_the_process_s_own_environment_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    assert load_settings().home == tmp_path


def test_what_is_set_is_taken(tmp_path: Path) -> None:
    lists_file = tmp_path / "lists.toml"
    lists_file.write_text('[dev]\nsource = "s3://bucket/dev"\n')
    settings = load_settings(
        {
            "MAIL_HOME": str(tmp_path / "home"),
            "MAIL_LISTS": str(lists_file),
            "MAIL_STORE": "s3://bucket/prefix",
            "MAIL_VECTORS": "s3vectors://bucket?region=eu-central-1",
            "MAIL_ENCODER": "all-minilm-l6-v2",
            "MAIL_PRECISION": "fp32",
            "MAIL_PG_DSN": f"host=db user=mail password={SECRET}",
            "DAGSTER_POSTGRES_URL": f"postgresql+psycopg2://u:{SECRET}@db/dagster",
            "MAIL_HTTP_AUTH": f"archives:{SECRET}",
        }
    )
    assert settings.home == tmp_path / "home"
    assert settings.store == "s3://bucket/prefix"
    assert settings.vectors == "s3vectors://bucket?region=eu-central-1"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "fp32")
    assert settings.pg_dsn == f"host=db user=mail password={SECRET}"
    assert settings.http_auth == f"archives:{SECRET}"
    assert SECRET not in repr(settings)


def test_models_are_kept_in_the_home_unless_told_otherwise(tmp_path: Path) -> None:
    home = {"MAIL_HOME": str(tmp_path)}
    assert load_settings(home).model_cache == tmp_path / "models"
    assert load_settings({**home, "MAIL_MODEL_DIR": "/srv/m"}).model_cache == Path("/srv/m")
