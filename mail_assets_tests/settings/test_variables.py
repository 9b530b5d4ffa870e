"""The table of settings: every parser, wrong values, secrets, and the page made from it."""

import dataclasses
from ipaddress import ip_network
from pathlib import Path

import pytest

from mail_assets.settings import variables
from mail_assets.settings.settings import Settings, list_set, load_settings
from mail_assets.settings.values import SettingsError, Variable
from mail_assets.settings.variables import TABLE, format_page
from mail_assets_tests.conftest import REPOSITORY

SECRET = "s3cr3t"
ROWS = {row.name: row for section in TABLE for row in section.rows}
REMOTE = {"MAIL_ENCODER": "openai:text-embedding-3-small", "MAIL_ENCODER_KEY": SECRET}
CHAT_MODEL = {"MAIL_CHAT_URL": "http://localhost:1/v1", "MAIL_CHAT_MODEL": "made-mini"}
HOOK = "https://hooks.slack.com/services/T0/B0/XYZ"


def test_docs_are_what_the_table_prints() -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == format_page(), "python -m mail_assets.settings.variables > docs/settings.md"


def test_every_name_has_one_row() -> None:
    assert len(ROWS) == sum(len(section.rows) for section in TABLE)
    assert all(row.help and "\n" not in row.help for row in ROWS.values())


def test_every_row_has_an_effect() -> None:
    """It is the field of its name, is read by its name, or another module names the variable."""
    package = Path(variables.__file__).parent.parent
    code = "".join(path.read_text() for path in package.rglob("*.py") if path.stem != "variables")
    rows = {name: one for name, one in vars(variables).items() if isinstance(one, Variable)}
    in_fields = {field.name.upper() for field in dataclasses.fields(Settings)}
    read = {name for name, row in rows.items() if f"{name}.read(" in code or row.name in code}
    assert rows.keys() - in_fields - read == set()


def test_unset_variables_have_their_defaults() -> None:
    for row in ROWS.values():
        assert row.read({}) == row.read({row.name: ""}) == row.default


@pytest.mark.parametrize(
    "row", [row for row in ROWS.values() if row.default and isinstance(row.default, str | int)]
)
def test_default_may_be_written(row: Variable[object]) -> None:
    text = "on" if row.default is True else str(row.default)
    assert row.read({row.name: text}) == row.default


@pytest.mark.parametrize(
    ("row", "text", "value"),
    [
        (variables.KEEP_ARCHIVES, "0", 0),
        (variables.KEEP_ARCHIVES, "07", 7),
        (variables.FRESH_HOURS, "168", 168),
        (variables.JOBS, "256", 256),
        (variables.CHAT_MODEL, " llama3.2\n", "llama3.2"),
        (variables.CHAT_KEY, "sk-1\n", "sk-1"),
        (variables.CHAT_URL, "http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        (variables.CHAT_URL, "http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        (variables.CHAT_URL, "https://gpu-box", "https://gpu-box"),
        (variables.UI_URL, "http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        (variables.UI_URL, "https://dagster.example.org/mail", "https://dagster.example.org/mail"),
        (variables.ALERT_URL, f" {HOOK}\n", HOOK),
        (variables.ALERT_URL, " ", ""),
        (variables.ENCODER_QUERY_PREFIX, "query: ", "query: "),
        (variables.OWNERS, " , ", ()),
        (variables.OWNERS, "ann@example.org", ("ann@example.org",)),
        (variables.OWNERS, "team:mail, ann@example.org", ("team:mail", "ann@example.org")),
        (variables.WEB_HOSTS, "a.example.org, b:8000", ("a.example.org", "b:8000")),
        (
            variables.WEB_PROXIES,
            "127.0.0.1, 10.0.0.0/8,::1",
            (ip_network("127.0.0.1/32"), ip_network("10.0.0.0/8"), ip_network("::1/128")),
        ),
    ],
)
def test_value_is_read(row: Variable[object], text: str, value: object) -> None:
    assert row.read({row.name: text}) == value


@pytest.mark.parametrize(("variable", "value", "becomes"), [
    ("MAIL_STORE", "mail/store", "{cwd}/mail/store"),
    ("MAIL_STORE", "~/store", "{home}/store"),
    ("MAIL_STORE", "file:///srv/mail", "file:///srv/mail"),
    ("MAIL_VECTORS", "lance:vectors", "lance:{cwd}/vectors"),
    ("MAIL_VECTORS", "lance:~/vectors", "lance:{home}/vectors"),
    ("MAIL_VECTORS", "lance:s3://bucket/vectors", "lance:s3://bucket/vectors"),
    ("MAIL_VECTORS", "pgvector:", "pgvector:"),
])  # fmt: skip
def test_folders_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, becomes: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    found = ROWS[variable].read({variable: value})
    assert found == becomes.format(cwd=Path.cwd(), home=tmp_path / "user")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("MAIL_HOME", str(REPOSITORY / "lists.toml"), "must be a folder"),
        ("MAIL_HOME", "~no-such-user-here/mail", "not a usable path"),
        ("MAIL_LISTS", "/no/such/lists.toml", "no such file; write one with `mail-assets init`"),
        ("MAIL_LISTS", str(REPOSITORY), "not a readable TOML file"),
        ("MAIL_LISTS", str(REPOSITORY / "LICENSE"), "not a readable TOML file"),
        ("MAIL_STORE", "ftp://host/mail", "use a folder, file:// or s3://"),
        ("MAIL_STORE", " ", "a store is needed"),
        ("MAIL_VECTORS", "vectors", "use one of lance:PATH"),
        ("MAIL_VECTORS", "lance:", "use lance:PATH"),
        ("MAIL_VECTORS", "s3vectors://bucket", "region=REGION"),
        ("MAIL_WORDS", "pgvector:", "unknown kind of word index"),
        ("MAIL_ENCODER", "bert", "allowed: all-minilm-l6-v2"),
        ("MAIL_ENCODER", "ollama:m", "multilingual-e5-small, openai:MODEL"),
        ("MAIL_PRECISION", "fp8", "allowed: fp32, int8, static"),
        ("MAIL_PROVIDER", "cuda", "set MAIL_PRECISION"),
        ("MAIL_SUMMARIES", "best", "allowed: chat, extractive"),
        ("MAIL_SUMMARIES", "chat", "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL"),
        ("MAIL_SUMMARY_TOKENS", "many", "must be a whole number from 1000 to 999999999"),
        ("MAIL_CHAT_BUDGET", "999", "must be a whole number from 1000 to 1000000"),
        ("MAIL_FRESH_HOURS", "999999", "must be 0 to 99999 hours; 0: never overdue"),
        *(
            ("MAIL_KEEP_ARCHIVES", wrong, "must be 0 to 99999 days; 0: not kept at all")
            for wrong in ("-1", "a week", "1.5", "٣", " 5", "9" * 5000)
        ),
        *(
            ("MAIL_JOBS", wrong, "must be a whole number from 1 to 256")
            for wrong in ("0", "257", "-1", "two")
        ),
        ("MAIL_WEB_PROCESSES", "257", "must be 0 to 256 processes; 0: searches run in threads"),
        ("MAIL_WEB_READS", "100000", "must be 0 to 99999 requests a minute; 0: any number"),
        ("MAIL_WEB_PROXIES", "proxy.example.org", "must be addresses or networks such as"),
        ("MAIL_WEB_PROXIES", "10.0.0.1/8", "must be addresses or networks such as"),
        ("MAIL_WEB_HOSTS", "https://a.example.org", "must be names such as archive.example.org"),
        *(
            ("MAIL_OWNERS", wrong, "an owner is an e-mail address or team:NAME")
            for wrong in ("ann", "team:", "ann@example", "ann@example.org,x")
        ),
        *(
            ("MAIL_UI_URL", wrong, "must be a base URL such as http://127.0.0.1:3000")
            for wrong in (
                *("127.0.0.1:3000", "ftp://example.org", "http://[::1", "http://a b"),
                *("https://example.org/?x", "https://a.org/#b", "https://a.org/<b>"),
                "https://a.org/a|b",
            )
        ),
        *(
            ("MAIL_CHAT_URL", wrong, "must be a base URL such as https://api.openai.com/v1")
            for wrong in (
                *("api.openai.com/v1", "ftp://host/v1", "https://", "https:///v1"),
                *("http://host:x/v1", "http://[::1/v1", "https://hö.example/v1", "https://h/v 1"),
                *("https://host/\nv1", "http://host:99999/v1"),
            )
        ),
        ("MAIL_CHAT_URL", "https://host/v1?key=x", "put a key in MAIL_CHAT_KEY"),
        ("MAIL_CHAT_URL", "https://host/v1#x", "put a key in MAIL_CHAT_KEY"),
        ("MAIL_ENCODER_URL", "http://gpu/v1", "is for MAIL_ENCODER=openai:MODEL only"),
    ],
)
def test_wrong_value_is_named_in_one_line(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    message = str(caught.value)
    assert message.startswith(f"{variable}=")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "value", "says"), [
    ("MAIL_ENCODER", "openai:", "must be openai:MODEL"),
    ("MAIL_ENCODER", "openai:two words", "must be openai:MODEL"),
    ("MAIL_ENCODER", "openai:m@host", "must be openai:MODEL"),
    ("MAIL_ENCODER_KEY", "", "https://api.openai.com/v1 requires a key"),
    ("MAIL_ENCODER_URL", "localhost:11434", "must be a base URL"),
    ("MAIL_ENCODER_DIMENSION", "4097", "whole number from 0 to 4096"),
    ("MAIL_ENCODER_MAX_TOKENS", "193", "whole number from 194 to 8192"),
    ("MAIL_ENCODER_MAX_TOKENS", "8193", "to 8192"),
    ("MAIL_ENCODER_QUERY_PREFIX", "x" * 401, "at most 400 bytes"),
    ("MAIL_ENCODER_DOCUMENT_PREFIX", "\udcff", "must be text"),
    ("MAIL_ENCODER_DOCUMENT_PREFIX", "p" * 350, "from 544 to 8192"),
    ("MAIL_PRECISION", "int8", "cannot be set for a model on a server"),
])  # fmt: skip
def test_wrong_variable_of_an_endpoint_is_named(name: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError, match=f"^MAIL_[A-Z_]+=.*{says}") as caught:
        load_settings({**REMOTE, name: value})
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("missing", CHAT_MODEL)
def test_half_a_chat_model_is_refused(missing: str) -> None:
    other = next(name for name in CHAT_MODEL if name != missing)
    with pytest.raises(SettingsError, match=f"{missing}='': required with {other}"):
        load_settings({**CHAT_MODEL, missing: ""})


@pytest.mark.parametrize(("variable", "value", "says"), [
    ("MAIL_PG_DSN", f"postgresql+psycopg2://u:{SECRET}@db/m", "='postgresql+psycopg2://***'"),
    ("MAIL_PG_DSN", f"postgresql://u:{SECRET}@[db/mail", "='postgresql://***'"),
    ("MAIL_PG_DSN", f"host=db password={SECRET} bogus", "='***': must be postgresql://USER"),
    ("MAIL_PG_DSN", f"host=db password={SECRET}://x bogus", "='***': must be postgresql://"),
    ("DAGSTER_POSTGRES_URL", f"postgresql://u:{SECRET}@db/d", "='postgresql://***': must begin"),
    ("DAGSTER_POSTGRES_URL", f"u:{SECRET}@db", "='***': must begin with postgresql+psycopg2"),
    ("MAIL_HTTP_AUTH", SECRET, "='***': must be USER:PASSWORD"),
    ("MAIL_FORGET_KEY", SECRET, "='***': must be 64 hexadecimal digits"),
    ("MAIL_ALERT_URL", f"http://example.org/{SECRET}", "='***': must be an https:// URL; http"),
    ("MAIL_STORE", f"s3://key:{SECRET}@bucket/x", "='s3://***@bucket/x'"),
    ("MAIL_STORE", f"https://key:a/{SECRET}@host/x", "='https://***@host/x'"),
    ("MAIL_STORE", f"https://u:{SECRET}@host/x", "='https://***@host/x'"),
    ("MAIL_VECTORS", f"supabase://u:{SECRET}@host/bucket", "='supabase://***@host/bucket'"),
    ("MAIL_VECTORS", f"lance:s3://key:{SECRET}@bucket/x", "='lance:s3://***@bucket/x'"),
    ("MAIL_UI_URL", f"https://u:{SECRET}@example.org", "='https://***@example.org'"),
    ("MAIL_CHAT_URL", f"https://u:{SECRET}@host/v1", "='https://***@host/v1': must have scheme"),
    *(
        ("MAIL_CHAT_KEY", key, "='***': must be one word of ASCII characters")
        for key in (f"two {SECRET}", f"sk\n{SECRET}", f"schlüssel{SECRET}", f"\x00{SECRET}")
    ),
])  # fmt: skip
def test_secret_in_a_wrong_value_is_not_repeated(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    message = str(caught.value)
    assert SECRET not in message
    assert message.startswith(f"{variable}{says}")
    assert caught.value.__cause__ is None  # a cause's own message would follow in a traceback


def test_set_variables_are_listed_without_secrets() -> None:
    environ = {"MAIL_HOME": "/srv", "MAIL_CHAT_KEY": SECRET, "MAIL_JOBS": "", "TERM": "xterm"}
    assert list_set(environ) == {"MAIL_HOME": "/srv", "MAIL_CHAT_KEY": "***"}


@pytest.mark.parametrize(("variable", "scheme"), [
    *(("MAIL_HOME", ""), ("MAIL_STORE", ""), ("MAIL_STORE", "file://")),
    *(("MAIL_VECTORS", "lance:"), ("MAIL_WORDS", "lance:"), ("MAIL_MODEL_DIR", "")),
    *(("MAIL_QUALITY_SET", ""), ("DAGSTER_HOME", "")),
])  # fmt: skip
@pytest.mark.parametrize("place", ["file", "file/below/it", "dangling"])
def test_folder_that_cannot_be_one_is_named(
    tmp_path: Path, variable: str, scheme: str, place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    value = f"{scheme}{tmp_path / place}"
    none = "this" if place in ("file", "dangling") else str(tmp_path / "file")
    with pytest.raises(SettingsError) as caught:
        load_settings({variable: value})
    assert str(caught.value) == (
        f"{variable}={value!r}: must be a folder, but {none} is not; set another path"
    )


def test_judged_set_is_a_folder_with_both_files(tmp_path: Path) -> None:
    for name in ("queries.jsonl", "qrels.tsv"):
        with pytest.raises(SettingsError, match=f"^MAIL_QUALITY_SET=.*folder with .*: no {name}$"):
            load_settings({"MAIL_QUALITY_SET": str(tmp_path)})
        (tmp_path / name).touch()
    assert load_settings({"MAIL_QUALITY_SET": str(tmp_path)}).quality_set == tmp_path
