"""lists.toml: keys, defaults and mistakes; and the first one that `init` writes."""

import tomllib
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.month import months_between
from mail_assets.settings.lists import (
    LANGUAGES,
    MailingList,
    Repository,
    format_lists_file,
    read_lists,
    write_lists_file,
)
from mail_assets.settings.values import SettingsError
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets_tests.conftest import REPOSITORY

SECRET = "s3cr3t"


@pytest.fixture
def lists_file(tmp_path: Path) -> Path:
    return tmp_path / "lists.toml"


def test_lists_are_sorted_and_have_defaults(lists_file: Path) -> None:
    lists_file.write_text(
        '[zeta]\nsource = "https://lists.example.org/zeta/"\n'
        '[alpha]\nsource = "mail/alpha"\ndialect = "pg"\nlanguage = "german"\nstart = "2001-02"\n'
    )
    first_month, last_month, lists, repositories = read_lists(lists_file)
    assert repositories == {}
    assert (first_month, last_month) == ("1995-01", None)
    assert [*lists] == ["alpha", "zeta"]
    folder = str(lists_file.parent / "mail" / "alpha")
    assert lists["alpha"] == MailingList("alpha", folder, "pg", "german", "2001-02")
    assert lists["zeta"] == MailingList(
        "zeta", "https://lists.example.org/zeta/", None, "english", "1995-01"
    )


@pytest.mark.parametrize(("source", "folder"), [
    ("mail", "{0}/mail"),
    ("../mail", "{1}/mail"),
    ("/srv/mail", "/srv/mail"),
    (".", "{0}"),
    ("maildir:mail", "maildir:{0}/mail"),
    ("public-inbox:../dev", "public-inbox:{1}/dev"),
    ("mbox:/srv/All mail.mbox", "mbox:/srv/All mail.mbox"),
    ("imap:mail", "{0}/imap:mail"),
])  # fmt: skip
def test_folder_is_relative_to_its_lists_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, folder: str
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "lists.toml").write_text(f'[dev]\nsource = "{source}"\n')
    monkeypatch.chdir("/")
    lists = read_lists(tmp_path / "etc" / "lists.toml").lists
    assert lists["dev"].source == folder.format(tmp_path / "etc", tmp_path)


SOURCE = 'source = "mail"\n'

#: Two lists, and the beginning of a repository.
REPOSITORIES = """
[dev]
source = "mail/dev"

[users]
source = "mail/users"

[repositories.crane]
"""


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("", "has no list; add a [NAME] table"),
        ('first_month = "2001-01"\n', "has no list"),
        ("[dev\n", "not a readable TOML file"),
        (f"[dev]\n{SOURCE}[dev]\n{SOURCE}", "not a readable TOML file"),
        (f"first_month = 2001\n[dev]\n{SOURCE}", "first_month=2001: must be a month"),
        (f'first_month = "2001-13"\n[dev]\n{SOURCE}', "first_month='2001-13': must be a month"),
        (f'last_month = "2001"\n[dev]\n{SOURCE}', "last_month='2001': must be a month"),
        (
            f'first_month = "2001-02"\nlast_month = "2001-01"\n[dev]\n{SOURCE}',
            "last_month='2001-01': must not be before first_month 2001-02",
        ),
        (
            f'last_month = "2001-01"\n[dev]\n{SOURCE}\nstart = "2001-02"',
            "start='2001-02': must not be after last_month 2001-01",
        ),
        ('dev = "mail"\n', "[dev]='mail': must be a table"),
        (f'["a|b"]\n{SOURCE}', "[a|b]='a|b': a list's name is letters"),
        (f'["a/b"]\n{SOURCE}', "a list's name is letters"),
        (f'[".hidden"]\n{SOURCE}', "a list's name is letters"),
        (f"[{'x' * 101}]\n{SOURCE}", "a list's name is letters"),
        (
            f'[dev]\n{SOURCE}sauce = "x"\n',
            "[dev] sauce='x': allowed: charset, description, dialect, ended, language, published",
        ),
        (f'[dev]\n{SOURCE}first_month = "2001-01"\n', "[dev] first_month='2001-01': allowed"),
        ("[dev]\nsource = 1\n", "[dev] source=1: must be a string"),
        (f"[dev]\n{SOURCE}published = 0\n", "[dev] published=0: must be true or false"),
        (f'[dev]\n{SOURCE}ended = "yes"\n', "[dev] ended='yes': must be true or false"),
        (f"\ufeff[dev]\n{SOURCE}", "begins with a byte order mark (BOM); save it as UTF-8"),
        (f"[Odd]\n{SOURCE}[odd]\n{SOURCE}", "[odd]='odd': differs from [Odd] only in upper and"),
        ("[dev]\n", "[dev] source='': a source is needed"),
        ('[dev]\nsource = "gopher://host/"\n', "[dev] source='gopher://host/'"),
        ('[dev]\nsource = "~no-such-user-here/x"\n', "[dev] source='~no-such-user-here/x'"),
        (f'[dev]\n{SOURCE}dialect = "mbx"\n', "[dev] dialect='mbx': allowed: "),
        (f'[dev]\n{SOURCE}language = "English"\n', "[dev] language='English': allowed: arabic"),
        (f'[dev]\n{SOURCE}charset = "koi9"\n', "[dev] charset='koi9': must be a charset of 8-bit"),
        (f'[dev]\n{SOURCE}charset = "utf-8"\n', "[dev] charset='utf-8': must be"),
        (f'[dev]\n{SOURCE}charset = "iso-2022-jp"\n', "[dev] charset='iso-2022-jp': must be"),
        (f'[dev]\n{SOURCE}charset = "us-ascii"\n', "[dev] charset='us-ascii': must be"),
        (f'[dev]\n{SOURCE}start = "1994-12"\n', "must not be before first_month 1995-01"),
        (f'[dev]\n{SOURCE}start = "2001-1"\n', "[dev] start='2001-1': must be a month"),
        (f'[dev]\nsource = "https://u:{SECRET}@host/[x"\n', "https://***@host/"),
        *(
            (f"[dev]\n{SOURCE}redirect_hosts = {hosts}\n", "[dev] redirect_hosts=")
            for hosts in (
                '"files.example.org"',
                '["https://files.example.org"]',
                '["a b"]',
                '["*"]',
                "[1]",
                '["a/b"]',
            )
        ),
        *(
            (f"repositories = {value}\n[dev]\n{SOURCE}", "[repositories.NAME]")
            for value in ('"x"', "1")
        ),
        *(
            (REPOSITORIES + keys, f"[repositories.crane] {wrong}=")
            for wrong, keys in (
                ("source", ""),
                ("source", 'source = "s3://bucket/x"\nlists = ["dev"]'),
                ("source", f'source = "https://u:{SECRET}@host/x"\nlists = ["dev"]'),
                ("lists", 'source = "x"'),
                ("lists", 'source = "x"\nlists = ["nobody"]'),
                ("lists", 'source = "x"\nlists = "dev"'),
                ("branch", 'source = "x"\nlists = ["dev"]\nbranch = "--upload-pack=x"'),
                ("branch", 'source = "x"\nlists = ["dev"]\nbranch = "a..b"'),
                ("branch", 'source = "x"\nlists = ["dev"]\nbranch = 1'),
                ("prefix", 'source = "x"\nlists = ["dev"]\nprefix = "a]b"'),
                ("language", 'source = "x"\nlists = ["dev"]\nlanguage = "english"'),
            )
        ),
    ],
)
def test_wrong_lists_file_is_named_with_its_place(lists_file: Path, toml: str, says: str) -> None:
    lists_file.write_text(toml)
    with pytest.raises(SettingsError) as caught:
        read_lists(lists_file)
    message = str(caught.value)
    assert message.startswith("MAIL_LISTS")
    assert str(lists_file) in message
    assert says in message
    assert "\n" not in message
    assert SECRET not in message


def test_lists_file_must_be_utf_8(lists_file: Path) -> None:
    lists_file.write_bytes('[dev]\nsource = "Müll"\n'.encode("latin-1"))
    with pytest.raises(SettingsError, match="not a readable TOML file"):
        read_lists(lists_file)


def test_own_lists_load_and_have_their_archives(tmp_path: Path) -> None:
    first_month, last_month, lists, _ = read_lists(REPOSITORY / "lists.toml")
    partitions = months_between(first_month, last_month or "2099-12")
    for name, one in lists.items():
        source = open_source(
            name, one.source, start=one.start, options=HttpOptions(), cache=tmp_path
        )
        archives = sorted(month.month for month in source.versions())
        assert archives == partitions, "every partition of the demo can be filled"


def test_postgresql_lists_load() -> None:
    lists = read_lists(REPOSITORY / "lists.postgresql.toml").lists
    assert len(lists) == 8
    for name, mail_list in lists.items():
        assert f"/{name}.{{yyyymm}}" in mail_list.source
        assert (mail_list.dialect, mail_list.start) == ("pg", "1997-01")


def test_charset_is_one_word_in_small_letters(lists_file: Path) -> None:
    lists_file.write_text(f'[dev]\n{SOURCE}charset = " KOI8 R"\n')
    assert read_lists(lists_file).lists["dev"].defaults[:2] == ("english", "koi8-r")


def test_languages_are_those_of_the_server(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute("select cfgname from pg_ts_config").fetchall()
    assert sorted(LANGUAGES) == sorted(name for (name,) in rows)


PLACE = "https://lists.example.org/dev/"


@pytest.mark.parametrize(
    ("more", "read"),
    [
        ({}, (None, "english", "1995-01")),
        (
            {"dialect": "pipermail", "language": "german", "start": "2010-03"},
            ("pipermail", "german", "2010-03"),
        ),
    ],
)
def test_written_list_is_read_back(
    tmp_path: Path, more: dict[str, str], read: tuple[str | None, str, str]
) -> None:
    path = tmp_path / "new" / "lists.toml"
    write_lists_file(path, {"my-list": {"source": PLACE, **more}})
    lists = {"my-list": MailingList("my-list", PLACE, *read)}
    assert read_lists(path) == (read[-1], None, lists, {})


def test_file_without_lists_has_an_example(lists_file: Path) -> None:
    write_lists_file(lists_file, {})
    with pytest.raises(SettingsError, match=r"has no list; add a .NAME. table"):
        read_lists(lists_file)
    head, example = lists_file.read_text().split("\n# [my-list]\n")
    filled = f"{head}\n[my-list]\n{example.replace('# ', '')}".replace("1995-01", "2010-03")
    lists_file.write_text(filled)
    assert read_lists(lists_file).lists["my-list"].start == "2010-03"


def test_comments_are_those_of_the_own_lists_file() -> None:
    explained = (REPOSITORY / "lists.toml").read_text().partition("\n\n")[0]
    assert format_lists_file({}).startswith(explained)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x7f")))
def test_any_source_is_one_toml_string(source: str) -> None:
    text = format_lists_file({"dev": {"source": source}})
    assert tomllib.loads(text)["dev"] == {"source": source}


def test_existing_file_is_never_overwritten(lists_file: Path) -> None:
    lists_file.write_text("mine")
    with pytest.raises(SettingsError, match=r"exists already; add a .NAME. table to it"):
        write_lists_file(lists_file, {"my-list": {"source": PLACE}})
    assert lists_file.read_text() == "mine"


@pytest.mark.parametrize(("name", "table", "says"), [
    ("a/b", {"source": PLACE}, "a list's name is letters"),
    ("dev", {"source": "ftp://host"}, "source='ftp://host'"),
    ("dev", {"source": PLACE, "dialect": "mbx"}, "dialect='mbx': allowed: "),
    ("dev", {"source": PLACE, "start": "2010"}, "first_month='2010': must be a month"),
    ("dev", {"source": "a\x7fb"}, "not a readable TOML file"),
    ("dev", {"source": "a\udcffb"}, "cannot be written"),
])  # fmt: skip
def test_wrong_list_leaves_no_file(
    lists_file: Path, name: str, table: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        write_lists_file(lists_file, {name: table})
    assert says in str(caught.value)
    assert not lists_file.exists()


def test_hosts_of_redirects_are_read(lists_file: Path) -> None:
    lists_file.write_text(
        '[dev]\nsource = "https://lists.example.org/"\n'
        'redirect_hosts = ["files.example.org", "10.0.0.5:8080", "[::1]:80"]\n'
    )
    hosts = read_lists(lists_file).lists["dev"].redirect_hosts
    assert hosts == ("files.example.org", "10.0.0.5:8080", "[::1]:80")


def test_repository_has_lists_branch_and_prefix(lists_file: Path) -> None:
    keys = 'source = "../crane"\nbranch = "main"\nlists = ["dev", "users"]\nprefix = "crane"\n'
    lists_file.write_text(REPOSITORIES + keys)
    read = read_lists(lists_file)
    assert [*read.lists] == ["dev", "users"]
    folder = str((lists_file.parent.parent / "crane").resolve())
    assert read.repositories == {
        "crane": Repository("crane", folder, "main", ("dev", "users"), "crane")
    }


def test_repository_of_the_only_list_needs_no_lists(lists_file: Path) -> None:
    url = "https://git.example.org/crane.git"
    lists_file.write_text(f'[dev]\nsource = "m"\n[repositories.crane]\nsource = "{url}"\n')
    assert read_lists(lists_file).repositories["crane"] == Repository("crane", url, "", ("dev",))
