"""Read and check lists.toml: lists, their months and repositories; write a first lists.toml."""

import json
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mail_assets.month import PATTERN as MONTH
from mail_assets.settings.values import SettingsError, absolute_path, choice, one_of

if TYPE_CHECKING:
    from mail_assets.workspace import ListDefaults

logger = logging.getLogger(__name__)

#: Default of `first_month`.
FIRST_MONTH = "1995-01"

#: Text search configurations that PostgreSQL 18 ships.
LANGUAGES = (
    *("simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english"),
    *("estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian"),
    *("irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian"),
    *("russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)

#: A list's name is part of partition keys (so no `|`, `,`, `[`, `]`), paths and URLs.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,250}[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::[0-9]{1,5})?"
)
#: Branch names that git allows, except those that look like options or ranges.
_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$))[A-Za-z0-9_][A-Za-z0-9._/+@#-]{0,199}")
_REPOSITORY_KEYS = {"source", "branch", "lists", "prefix"}
_KEYS = {
    *("source", "dialect", "language", "start", "charset", "redirect_hosts", "published"),
    *("ended", "description"),
}
#: Boolean keys.
_SWITCHES = ("published", "ended")
#: Longest description in characters; it is shown in one line.
MAX_DESCRIPTION = 300
#: Top-level keys; no list can have such a name.
_REPOSITORIES = "repositories"
_RESERVED = ("first_month", "last_month", _REPOSITORIES)
_REMEDY = "write one with `mail-assets init`, or set MAIL_LISTS"


@dataclass(frozen=True)
class MailingList:
    """One mailing list of lists.toml.

    `source` is a folder, or an https:// or s3:// URL. `dialect` is the dialect of its mbox files;
    None: it is detected for each archive. `language` is a PostgreSQL text search configuration.
    `start` is the first month, "YYYY-MM". `charset` applies to mail that names no charset; "":
    windows-1252. `redirect_hosts` are other hosts ("host" or "host:port") to which the source may
    redirect or link. A list that is not `published` is filled, but its mail is not shown. If a list
    has `ended`, no more mail is expected. `description` is a line about the list for readers.
    """

    name: str
    source: str
    dialect: str | None
    language: str
    start: str
    charset: str = ""
    redirect_hosts: tuple[str, ...] = ()
    published: bool = True
    ended: bool = False
    description: str = ""

    @property
    def defaults(self) -> "ListDefaults":
        """Language, charset for mail that names none, and whether the list is published."""
        from mail_assets.workspace import ListDefaults

        return ListDefaults(self.language, self.charset, self.published)


@dataclass(frozen=True)
class Repository:
    """One git repository of lists.toml, whose commits are linked to their discussions.

    `source` is a folder, a bundle or an http(s):// URL. `branch` is the branch to read; "": HEAD.
    `lists` discuss the repository; its commits belong to the months of the first one. `prefix`
    marks its patches in subjects, such as "ndctl" in "[ndctl PATCH]"; "": none.
    """

    name: str
    source: str
    branch: str
    lists: tuple[str, ...]
    prefix: str = ""


class ListsFile(NamedTuple):
    """Content of a lists.toml; without a `last_month`, new months are added as time passes."""

    first_month: str
    last_month: str | None
    lists: dict[str, MailingList]
    repositories: dict[str, Repository]


class PublishedLists:
    """The published lists of a lists.toml with their languages; a changed file is read again.

    While the file cannot be read, such as during an edit, the lists stay as they were.
    """

    def __init__(self, path: Path, languages: Mapping[str, str]) -> None:
        self._path, self._languages = path, languages
        self._mark: object = None

    def __call__(self) -> Mapping[str, str]:
        """Return list -> text search configuration; read the file if it has changed."""
        mark = _read_mark(self._path)
        if mark != self._mark:
            self._mark = mark
            try:
                lists = read_lists(self._path).lists
            except SettingsError as error:
                logger.warning("the lists stay as they were: %s", error)
            else:
                self._languages = {
                    name: one.language for name, one in lists.items() if one.published
                }
        return self._languages


class LoadedLists:
    """The content of a lists.toml when it was loaded, to be compared with the file later.

    `languages` are the languages of its published lists.
    """

    def __init__(self, path: Path, languages: Mapping[str, str]) -> None:
        self._path, self._loaded = path, _read_bytes(path)
        self.published = PublishedLists(path, languages)

    def describe_change(self) -> str:
        """Describe the change of the file since it was loaded, and the remedy; "" if unchanged."""
        if (now := _read_bytes(self._path)) == self._loaded:
            return ""
        try:
            before, after = (
                _parse_lists((one or b"").decode(), self._path) for one in (self._loaded, now)
            )
        except (SettingsError, UnicodeDecodeError) as error:
            return f"{self._path} has changed since it was loaded, but cannot be read: {error}"
        changes = {
            "new": [*after.lists.keys() - before.lists.keys()],
            "gone": [*before.lists.keys() - after.lists.keys()],
            "changed": [
                name
                for name in after.lists.keys() & before.lists.keys()
                if after.lists[name] != before.lists[name]
            ],
        }
        said = [f"{what}: {', '.join(sorted(names))}" for what, names in changes.items() if names]
        if after[:2] != before[:2]:
            said.append(f"months {after.first_month} to {after.last_month or 'now'}")
        what = f" ({'; '.join(said)})" if said else ""
        return (
            f"{self._path} has changed since it was loaded{what}: reload the code location (Reload "
            "in the UI, or restart the daemon)"
        )


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _read_mark(path: Path) -> object:
    """Return a value that changes when a file changes; None if the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class _Bounds(NamedTuple):
    first: str
    last: str | None


def read_lists(path: Path) -> ListsFile:
    """Read a lists.toml; its lists are sorted by name.

    A source without a scheme is a folder, relative to the file.

    Raises:
        SettingsError: the file is missing, unreadable or wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError("MAIL_LISTS", str(path), f"no such file; {_REMEDY}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("MAIL_LISTS", str(path), f"not a readable TOML file: {error}") from None
    return _parse_lists(text, path)


def check_name(place: str, name: str) -> None:
    """Check the name of a list.

    Raises:
        SettingsError: a list cannot have this name.
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(place, name, "a list's name is letters, digits, '.', '_' and '-'")
    if name in _RESERVED:
        raise SettingsError(place, name, "is a top-level key of lists.toml; use another name")


def _parse_lists(text: str, path: Path) -> ListsFile:
    if text.startswith("\ufeff"):
        rule = "begins with a byte order mark (BOM); save it as UTF-8 without one"
        raise SettingsError("MAIL_LISTS", str(path), rule)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("MAIL_LISTS", str(path), f"not a readable TOML file: {error}") from None
    first_month = document.pop("first_month", FIRST_MONTH)
    place = f"MAIL_LISTS {path}"
    _require_month(f"{place} first_month", first_month)
    last_month = document.pop("last_month", None)
    if last_month is not None:
        _require_month(f"{place} last_month", last_month)
        if last_month < first_month:
            raise SettingsError(
                f"{place} last_month", last_month, f"must not be before first_month {first_month}"
            )
    repositories = document.pop(_REPOSITORIES, {})
    if not document:
        raise SettingsError("MAIL_LISTS", str(path), "has no list; add a [NAME] table")
    seen: dict[str, str] = {}
    for name in document:
        if (other := seen.setdefault(name.lower(), name)) != name:
            rule = f"differs from [{other}] only in upper and lower case; use another name"
            raise SettingsError(f"{place} [{name}]", name, rule)
    bounds = _Bounds(first_month, last_month)
    lists = {
        name: _mailing_list(f"{place} [{name}]", name, table, path.parent, bounds)
        for name, table in sorted(document.items())
    }
    return ListsFile(
        first_month, last_month, lists, _read_repositories(place, repositories, lists, path.parent)
    )


def _read_repositories(
    place: str, tables: object, lists: Mapping[str, MailingList], folder: Path
) -> dict[str, Repository]:
    place = f"{place} [{_REPOSITORIES}]"
    if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        rule = f"must be tables; write [{_REPOSITORIES}.NAME] with a source"
        raise SettingsError(place, tables, rule)
    return {
        name: _read_repository(f"{place[:-1]}.{name}]", name, table, lists, folder)
        for name, table in sorted(tables.items())
    }


def _read_repository(
    place: str,
    name: str,
    table: Mapping[str, object],
    lists: Mapping[str, MailingList],
    folder: Path,
) -> Repository:
    if not _NAME.fullmatch(name):
        rule = "a repository's name is letters, digits, '.', '_' and '-'"
        raise SettingsError(place, name, rule)
    if unknown := sorted(set(table) - _REPOSITORY_KEYS):
        raise SettingsError(f"{place} {unknown[0]}", table[unknown[0]], one_of(_REPOSITORY_KEYS))
    texts = {}
    for key in ("source", "branch", "prefix"):
        text = table.get(key, "")
        if not isinstance(text, str):
            raise SettingsError(f"{place} {key}", text, "must be a string")
        texts[key] = text
    source = _read_repository_source(f"{place} source", texts["source"], folder)
    named = table.get("lists", [*lists] if len(lists) == 1 else [])
    if not isinstance(named, list) or not named or not all(one in lists for one in named):
        rule = f"must be a list of lists of this file, such as [{_toml_string(next(iter(lists)))}]"
        raise SettingsError(f"{place} lists", named, rule)
    if texts["branch"] and not _BRANCH.fullmatch(texts["branch"]):
        raise SettingsError(f"{place} branch", texts["branch"], 'must be a branch such as "main"')
    if not re.fullmatch(r"[^\[\]\r\n]{0,100}", texts["prefix"]):
        rule = 'must be the word in the brackets of a subject, such as "ndctl"'
        raise SettingsError(f"{place} prefix", texts["prefix"], rule)
    return Repository(name, source, texts["branch"], tuple(named), texts["prefix"].strip())


def _read_repository_source(name: str, value: str, folder: Path) -> str:
    from mail_assets.sources.urls import check_http_url, folder_path, is_template, url_scheme

    try:
        scheme = url_scheme(value)
        if scheme == "s3":
            raise ValueError("must be a folder, a bundle or an http(s):// URL of a git repository")
        if scheme == "file":
            path = str(folder_path(value))
            return str(absolute_path(name, path, folder).resolve())
        check_http_url(value)
        if is_template(value):
            raise ValueError("the URL of a repository cannot have a month")
    except ValueError as error:
        raise SettingsError(name, value, str(error)) from None
    return value


def _mailing_list(
    place: str, name: str, table: object, folder: Path, bounds: _Bounds
) -> MailingList:
    if not isinstance(table, dict):
        raise SettingsError(place, table, "must be a table with a source")
    check_name(place, name)
    if unknown := sorted(set(table) - _KEYS):
        raise SettingsError(f"{place} {unknown[0]}", table[unknown[0]], one_of(_KEYS))
    hosts = _read_hosts(f"{place} redirect_hosts", table.get("redirect_hosts", []))
    for key, value in table.items():
        if key in _SWITCHES:
            if not isinstance(value, bool):
                raise SettingsError(f"{place} {key}", value, "must be true or false")
        elif key != "redirect_hosts" and not isinstance(value, str):
            raise SettingsError(f"{place} {key}", value, "must be a string")
    source = _read_source(f"{place} source", table.get("source", ""), folder)
    dialect = table.get("dialect")
    if dialect is not None:
        from mail_assets.mail.archive.mbox import DIALECTS

        choice(*DIALECTS)(f"{place} dialect", dialect)
    language = table.get("language", "english")
    choice(*LANGUAGES)(f"{place} language", language)
    start = table.get("start", bounds.first)
    _require_month(f"{place} start", start)
    if start < bounds.first:
        raise SettingsError(
            f"{place} start", start, f"must not be before first_month {bounds.first}"
        )
    if bounds.last and start > bounds.last:
        raise SettingsError(f"{place} start", start, f"must not be after last_month {bounds.last}")
    charset = _read_charset(f"{place} charset", table.get("charset", ""))
    switches = {key: table[key] for key in _SWITCHES if key in table}
    description = _read_description(f"{place} description", table.get("description", ""))
    return MailingList(
        name,
        source,
        dialect,
        language,
        start,
        charset,
        hosts,
        description=description,
        **switches,
    )


def _read_description(name: str, value: str) -> str:
    line = " ".join(value.split())
    if len(line) > MAX_DESCRIPTION:
        rule = f"must be a line of at most {MAX_DESCRIPTION} characters"
        raise SettingsError(name, f"{line[:40]}...", rule)
    return line


def _read_hosts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SettingsError(name, value, 'must be a list of hosts such as ["files.example.org"]')
    for host in value:
        if not isinstance(host, str) or not _HOST.fullmatch(host):
            rule = 'must be a host such as "files.example.org", or host:port'
            raise SettingsError(name, host, rule)
    return tuple(value)


def _read_charset(name: str, value: str) -> str:
    if not value:
        return ""
    from mail_assets.mail.message.decoding import is_legacy

    if not is_legacy(value):
        rule = "must be a charset of 8-bit text such as koi8-r, euc-jp or gb2312; UTF-8 is detected"
        raise SettingsError(name, value, rule)
    return "-".join(value.lower().split())


def _read_source(name: str, value: str, folder: Path) -> str:
    if value.strip() and ":" not in value:  # a plain path needs no further check
        return str(absolute_path(name, value, folder).resolve())
    from mail_assets.sources.open import check_source
    from mail_assets.sources.urls import split_kind

    kind, place = split_kind(value)
    if place and "://" not in place:
        place = str(absolute_path(name, place, folder).resolve())
    source = f"{kind}:{place}" if kind else place
    try:
        check_source(source)
    except ValueError as error:
        raise SettingsError(name, value, str(error)) from None
    return source


def _require_month(name: str, value: object) -> None:
    if not isinstance(value, str) or not re.fullmatch(MONTH, value):
        raise SettingsError(name, value, 'must be a month such as "1997-01"')


# the comments at the top of the checkout's lists.toml, word for word; a test compares them
_HEAD = """\
# The mailing lists, one table each. The name of a list cannot be changed later: it is part of every
# key.
#
#   source    a folder of monthly archives, a Maildir, a folder of .eml files, an MH folder, a
#             mailbox of Apple Mail, one big mbox file or a public-inbox (paths are relative to
#             this file); s3://bucket/prefix; or https://..., a page that links to the archives
#             or a URL with {yyyymm}, {yyyy-mm} or {yyyy-Month} in its path. For servers of a kind:
#             public-inbox:https://..., hyperkitty:https://... or ponymail:https://...
#             (docs/sources.md)
#   dialect   how the mbox files quote "From " lines: plain, mboxrd, mboxo, pg (postgresql.org) or
#             pipermail. Leave it out: it is detected for each archive. If you set it, a check of
#             mbox_archives names the months where it is wrong.
#   language  a PostgreSQL text search configuration: english, spanish, simple, ...
#   charset   for mail that declares no charset and is not UTF-8: koi8-r, euc-jp, gb2312, ...;
#             default windows-1252
#   start     the first month, "YYYY-MM"
#   description  one line about the list, shown on its pages
#   ended     true: the list is closed; doctor does not report that it is silent
#   published false: the list is filled, but its mail is never shown (docs/sources.md)
#   redirect_hosts  other hosts that an https:// source may redirect or link to

# The oldest month of any list. You may lower it later. If you raise it, older months stay stored.
"""

_EXAMPLE = """
# [my-list]
# source = "/srv/archives/my-list"
# language = "english"
# start = "2010-03"
"""


def format_lists_file(tables: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of a lists.toml with these lists, or with an example in comments.

    `tables`: list -> its table, with source, dialect, language, start.
    """
    starts = [table["start"] for table in tables.values() if "start" in table]
    head = f"{_HEAD}first_month = {_toml_string(min(starts, default=FIRST_MONTH))}\n"
    return head + ("".join(starmap(_format_table, tables.items())) or _EXAMPLE)


def write_lists_file(path: Path, tables: Mapping[str, Mapping[str, str]]) -> None:
    """Check the lists and write them to a new lists.toml.

    Raises:
        SettingsError: a list is wrong, or the file exists or cannot be written.
    """
    text = format_lists_file(tables)
    if tables:
        _parse_lists(text, path)
    try:
        content = text.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            os.fchmod(file.fileno(), 0o644)  # readable by all: it has no mail
            file.write(content)
    except FileExistsError:
        raise SettingsError(
            "MAIL_LISTS", str(path), "exists already; add a [NAME] table to it"
        ) from None
    except (OSError, UnicodeEncodeError) as error:
        raise SettingsError("MAIL_LISTS", str(path), f"cannot be written: {error}") from None


def _format_table(name: str, table: Mapping[str, str]) -> str:
    lines = [f"{key} = {_toml_string(value)}\n" for key, value in table.items()]
    return f"\n[{_toml_string(name)}]\n" + "".join(lines)


def _toml_string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON's escapes are valid in TOML
