"""Settings: defaults that need nothing, wrong values named in one line, secrets never shown."""

from pathlib import Path

import psycopg
import pytest

from mail_assets.settings.environment import (
    LANGUAGES,
    PROJECT,
    MailList,
    SettingsError,
    load_settings,
    read_lists,
)

SECRET = "s3cr3t"


@pytest.fixture
def lists_file(tmp_path: Path) -> Path:
    return tmp_path / "lists.toml"


def test_without_an_environment_everything_has_a_default() -> None:
    settings = load_settings({})
    assert settings.home == PROJECT / "var"
    assert settings.store == str(PROJECT / "var" / "store")
    assert settings.vectors == f"lance:{PROJECT / 'var' / 'vectors'}"
    assert (settings.encoder, settings.precision) == ("all-minilm-l6-v2", "int8")
    assert (settings.pg_dsn, settings.dagster_url, settings.http_auth) == ("", "", "")
    assert settings.dagster_home == PROJECT / "var" / "dagster"
    assert [*settings.lists] == ["harbor-dev", "harbor-users"]


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    names = ("HOME", "LISTS", "STORE", "VECTORS", "ENCODER", "PRECISION", "PG_DSN", "HTTP_AUTH")
    assert load_settings({f"MAIL_{name}": "" for name in names}) == load_settings({})


def test_the_processs_own_environment_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MAIL_HOME", str(tmp_path))
    assert load_settings().home == tmp_path


def test_what_is_set_is_taken(tmp_path: Path, lists_file: Path) -> None:
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
        ("MAIL_HOME", str(PROJECT / "lists.toml"), "must be a directory"),
        ("MAIL_HOME", "~no-such-user-here/mail", "not a usable path"),
        ("MAIL_LISTS", "/no/such/lists.toml", "no such file"),
        ("MAIL_LISTS", str(PROJECT), "not a readable TOML file"),
        ("MAIL_LISTS", str(PROJECT / "LICENSE"), "not a readable TOML file"),
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


def test_lists_are_sorted_and_have_defaults(lists_file: Path) -> None:
    lists_file.write_text(
        '[zeta]\nsource = "https://lists.example.org/zeta/"\n'
        '[alpha]\nsource = "mail/alpha"\ndialect = "pg"\nlanguage = "german"\nstart = "2001-02"\n'
    )
    first, lists = read_lists(lists_file)
    assert first == "1995-01"
    assert [*lists] == ["alpha", "zeta"]
    folder = str(lists_file.parent / "mail" / "alpha")
    assert lists["alpha"] == MailList("alpha", folder, "pg", "german", "2001-02")
    assert lists["zeta"] == MailList(
        "zeta", "https://lists.example.org/zeta/", "plain", "english", "1995-01"
    )


@pytest.mark.parametrize(
    ("source", "folder"),
    [("mail", "{0}/mail"), ("../mail", "{1}/mail"), ("/srv/mail", "/srv/mail"), (".", "{0}")],
)
def test_a_folder_is_relative_to_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, folder: str
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "lists.toml").write_text(f'[dev]\nsource = "{source}"\n')
    monkeypatch.chdir("/")
    _, lists = read_lists(tmp_path / "etc" / "lists.toml")
    assert lists["dev"].source == folder.format(tmp_path / "etc", tmp_path)


SOURCE = 'source = "mail"\n'


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("", "names no list; add a [NAME] table"),
        ('first_month = "2001-01"\n', "names no list"),
        ("[dev\n", "not a readable TOML file"),
        (f"[dev]\n{SOURCE}[dev]\n{SOURCE}", "not a readable TOML file"),
        (f"first_month = 2001\n[dev]\n{SOURCE}", "first_month=2001: must be a month"),
        (f'first_month = "2001-13"\n[dev]\n{SOURCE}', "first_month='2001-13': must be a month"),
        ('dev = "mail"\n', "[dev]='mail': must be a table"),
        (f'["a|b"]\n{SOURCE}', "[a|b]='a|b': a list's name is letters"),
        (f'["a/b"]\n{SOURCE}', "a list's name is letters"),
        (f'[".hidden"]\n{SOURCE}', "a list's name is letters"),
        (f"[{'x' * 101}]\n{SOURCE}", "a list's name is letters"),
        (f'[dev]\n{SOURCE}sauce = "x"\n', "[dev] sauce='x': allowed: dialect, language, source"),
        (f'[dev]\n{SOURCE}first_month = "2001-01"\n', "[dev] first_month='2001-01': allowed"),
        ("[dev]\nsource = 1\n", "[dev] source=1: must be a string"),
        ("[dev]\n", "[dev] source='': a source is needed"),
        ('[dev]\nsource = "gopher://host/"\n', "[dev] source='gopher://host/'"),
        ('[dev]\nsource = "~no-such-user-here/x"\n', "[dev] source='~no-such-user-here/x'"),
        (f'[dev]\n{SOURCE}dialect = "mbx"\n', "[dev] dialect='mbx': allowed: "),
        (f'[dev]\n{SOURCE}language = "English"\n', "[dev] language='English': allowed: arabic"),
        (f'[dev]\n{SOURCE}start = "1994-12"\n', "must not be before first_month 1995-01"),
        (f'[dev]\n{SOURCE}start = "2001-1"\n', "[dev] start='2001-1': must be a month"),
    ],
)
def test_a_wrong_lists_file_is_named_with_place_and_remedy(
    lists_file: Path, toml: str, says: str
) -> None:
    lists_file.write_text(toml)
    with pytest.raises(SettingsError) as caught:
        load_settings({"MAIL_LISTS": str(lists_file)})
    message = str(caught.value)
    assert message.startswith("MAIL_LISTS")
    assert str(lists_file) in message
    assert says in message
    assert "\n" not in message


def test_a_lists_file_in_another_encoding_is_named(lists_file: Path) -> None:
    lists_file.write_bytes('[dev]\nsource = "Müll"\n'.encode("latin-1"))
    with pytest.raises(SettingsError, match="not a readable TOML file"):
        read_lists(lists_file)


def test_a_password_in_a_lists_source_is_not_repeated(lists_file: Path) -> None:
    lists_file.write_text(f'[dev]\nsource = "https://u:{SECRET}@host/[x"\n')
    with pytest.raises(SettingsError, match=r"https://\*\*\*@host/") as caught:
        read_lists(lists_file)
    assert SECRET not in str(caught.value)


def test_the_repositorys_own_lists_load_and_are_there() -> None:
    first, lists = read_lists(PROJECT / "lists.toml")
    assert first == "1995-01"
    for mail_list in lists.values():
        assert any(Path(mail_list.source).iterdir())


def test_the_eight_postgresql_lists_load() -> None:
    _, lists = read_lists(PROJECT / "lists.postgresql.toml")
    assert len(lists) == 8
    for name, mail_list in lists.items():
        assert f"/{name}.{{yyyymm}}" in mail_list.source
        assert (mail_list.dialect, mail_list.start) == ("pg", "1997-01")


def test_languages_are_those_of_the_server(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute("select cfgname from pg_ts_config").fetchall()
    assert sorted(LANGUAGES) == sorted(name for (name,) in rows)


def test_a_judged_set_is_a_folder_with_both_files(tmp_path: Path) -> None:
    assert load_settings({}).quality_set is None
    for name in ("queries.jsonl", "qrels.tsv"):
        with pytest.raises(SettingsError, match=f"^MAIL_QUALITY_SET=.*folder with .*: no {name}$"):
            load_settings({"MAIL_QUALITY_SET": str(tmp_path)})
        (tmp_path / name).touch()
    assert load_settings({"MAIL_QUALITY_SET": str(tmp_path)}).quality_set == tmp_path
