"""The settings of Dagster's storage do not depend on the lists."""

from pathlib import Path

import pytest

from mail_assets.settings.settings import load_dagster_settings, load_settings
from mail_assets.settings.values import SettingsError

URL = "postgresql+psycopg2://dagster:s3cr3t@db/dagster"


def test_a_mistake_in_lists_toml_does_not_stop_dagsters_storage(tmp_path: Path) -> None:
    lists_file = tmp_path / "lists.toml"
    lists_file.write_text("[dev\n")
    environ = {
        "MAIL_HOME": str(tmp_path),
        "MAIL_LISTS": str(lists_file),
        "DAGSTER_POSTGRES_URL": URL,
    }
    with pytest.raises(SettingsError, match="not a readable TOML file"):
        load_settings(environ)
    settings = load_dagster_settings(environ)
    assert (settings.home, settings.postgres_url) == (tmp_path, URL)
    assert "s3cr3t" not in repr(settings)


@pytest.mark.parametrize("environ", [{}, {"DAGSTER_POSTGRES_URL": URL}])
def test_it_has_the_defaults_of_all_settings(environ: dict[str, str]) -> None:
    settings, every = load_dagster_settings(environ), load_settings(environ)
    assert (settings.home, settings.postgres_url) == (every.home, every.dagster_url)


def test_a_url_for_another_driver_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError, match=r"='postgresql://\*\*\*': must begin with postgresql"):
        load_dagster_settings({"DAGSTER_POSTGRES_URL": URL.replace("+psycopg2", "")})
