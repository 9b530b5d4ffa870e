"""Environment variables: wrong values named in one line, secrets never shown."""

from pathlib import Path

import pytest

from mail_assets.settings.settings import load_settings
from mail_assets.settings.values import SettingsError
from mail_assets_tests.conftest import REPOSITORY

SECRET = "s3cr3t"


def test_a_provider_other_than_the_cpu_needs_fp32() -> None:
    assert load_settings({}).provider == "cpu"
    fp32 = {"MAIL_PROVIDER": "openvino", "MAIL_PRECISION": "fp32"}
    assert load_settings(fp32).provider == "openvino"
    with pytest.raises(SettingsError, match=r"MAIL_PROVIDER='cuda': .*fp32 only.*MAIL_PRECISION"):
        load_settings({"MAIL_PROVIDER": "cuda"})


@pytest.mark.parametrize(
    ("variable", "value", "becomes"),
    [
        ("MAIL_STORE", "mail/store", "{cwd}/mail/store"),
        ("MAIL_STORE", "~/store", "{home}/store"),
        ("MAIL_STORE", "file:///srv/mail", "file:///srv/mail"),
        ("MAIL_VECTORS", "lance:vectors", "lance:{cwd}/vectors"),
        ("MAIL_VECTORS", "lance:~/vectors", "lance:{home}/vectors"),
        ("MAIL_VECTORS", "lance:s3://bucket/vectors", "lance:s3://bucket/vectors"),
        ("MAIL_VECTORS", "pgvector:", "pgvector:"),
    ],
)
def test_folders_are_absolute_so_that_every_process_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, becomes: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    settings = load_settings({variable: value})
    found = {"MAIL_STORE": settings.store, "MAIL_VECTORS": settings.vectors}[variable]
    assert found == becomes.format(cwd=Path.cwd(), home=tmp_path / "user")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("MAIL_HOME", str(REPOSITORY / "lists.toml"), "must be a directory"),
        ("MAIL_HOME", "~no-such-user-here/mail", "not a usable path"),
        ("MAIL_LISTS", "/no/such/lists.toml", "no such file; write one with `mail-assets init`"),
        ("MAIL_LISTS", str(REPOSITORY), "not a readable TOML file"),
        ("MAIL_LISTS", str(REPOSITORY / "LICENSE"), "not a readable TOML file"),
        ("MAIL_STORE", "ftp://host/mail", "use a folder, file:// or s3://"),
        ("MAIL_STORE", " ", "a store is needed"),
        ("MAIL_VECTORS", "vectors", "use one of lance:PATH"),
        ("MAIL_VECTORS", "lance:", "use lance:PATH"),
        ("MAIL_VECTORS", "s3vectors://bucket", "region=REGION"),
        ("MAIL_ENCODER", "bert", "allowed: all-minilm-l6-v2"),
        ("MAIL_PRECISION", "fp8", "int8"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    message = str(caught.value)
    assert message.startswith(f"{variable}={value!r}: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        (
            "MAIL_PG_DSN",
            f"postgresql+psycopg2://u:{SECRET}@db/mail",
            "='postgresql+psycopg2://***'",
        ),
        ("MAIL_PG_DSN", f"postgresql://u:{SECRET}@[db/mail", "='postgresql://***'"),
        ("MAIL_PG_DSN", f"host=db password={SECRET} bogus", "='***': must be postgresql://USER"),
        ("MAIL_PG_DSN", f"host=db password={SECRET}://x bogus", "='***': must be postgresql://"),
        ("DAGSTER_POSTGRES_URL", f"postgresql://u:{SECRET}@db/d", "='postgresql://***'"),
        ("DAGSTER_POSTGRES_URL", f"u:{SECRET}@db", "='***': must begin with postgresql+psycopg2"),
        ("MAIL_HTTP_AUTH", SECRET, "='***': must be USER:PASSWORD"),
        ("MAIL_STORE", f"s3://key:{SECRET}@bucket/x", "='s3://***@bucket/x'"),
        ("MAIL_STORE", f"https://key:a/{SECRET}@host/x", "='https://***@host/x'"),
        ("MAIL_STORE", f"https://u:{SECRET}@host/x", "='https://***@host/x'"),
        ("MAIL_VECTORS", f"supabase://u:{SECRET}@host/bucket", "='supabase://***@host/bucket'"),
        ("MAIL_VECTORS", f"lance:s3://key:{SECRET}@bucket/x", "='lance:s3://***@bucket/x'"),
    ],
)
def test_a_wrong_value_with_a_secret_in_it_is_not_repeated(
    variable: str, value: str, says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    message = str(caught.value)
    assert SECRET not in message
    assert message.startswith(variable)
    assert says in message
    assert caught.value.__cause__ is None  # a cause's own message would follow in a traceback


def test_a_model_on_a_server_is_one_name_without_its_key() -> None:
    settings = load_settings(
        {
            "MAIL_ENCODER": "openai:nomic-embed-text",
            "MAIL_ENCODER_URL": "http://127.0.0.1:11434/v1",
            "MAIL_ENCODER_DIMENSION": "768",
            "MAIL_ENCODER_KEY": SECRET,
        }
    )
    name = "openai:nomic-embed-text@http://127.0.0.1:11434/v1?dimension=768"
    assert (settings.encoder, settings.precision) == (name, "served")
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"MAIL_ENCODER": "openai:m"}, "MAIL_ENCODER_KEY='': https://api.openai.com/v1 wants a"),
        ({"MAIL_ENCODER": "openai:"}, "MAIL_ENCODER='openai:': must be openai:MODEL"),
        (
            {"MAIL_ENCODER": "openai:m", "MAIL_ENCODER_KEY": SECRET, "MAIL_PRECISION": "int8"},
            "MAIL_PRECISION='int8': an endpoint has its own",
        ),
        (
            {"MAIL_ENCODER": "openai:m", "MAIL_ENCODER_KEY": f"two {SECRET}"},
            "MAIL_ENCODER_KEY='***': must be one word",
        ),
        (
            {"MAIL_ENCODER": "openai:m", "MAIL_ENCODER_URL": f"https://u:{SECRET}@host/v1"},
            "MAIL_ENCODER_URL='https://***@host/v1': must be scheme, host and path only",
        ),
        ({"MAIL_ENCODER_URL": "http://gpu/v1"}, "is for MAIL_ENCODER=openai:MODEL only"),
        ({"MAIL_ENCODER_BATCH": "64"}, "is for MAIL_ENCODER=openai:MODEL only"),
        ({"MAIL_ENCODER": "ollama:m"}, "gte-small, openai:MODEL"),
    ],
)
def test_a_wrong_endpoint_stops_at_start(environ: dict[str, str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ)
    message = str(caught.value)
    assert says in message
    assert SECRET not in message
    assert caught.value.__cause__ is None


def test_a_judged_set_is_a_folder_with_both_files(tmp_path: Path) -> None:
    assert load_settings({}).quality_set is None
    for name in ("queries.jsonl", "qrels.tsv"):
        with pytest.raises(SettingsError, match=f"^MAIL_QUALITY_SET=.*folder with .*: no {name}$"):
            load_settings({"MAIL_QUALITY_SET": str(tmp_path)})
        (tmp_path / name).touch()
    assert load_settings({"MAIL_QUALITY_SET": str(tmp_path)}).quality_set == tmp_path
