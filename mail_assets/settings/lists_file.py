"""The mailing lists and their months, read from lists.toml and checked."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mail_assets.mail.archive.dialects import DIALECTS
from mail_assets.mail.message.decoding import is_legacy
from mail_assets.month import is_month
from mail_assets.settings.errors import SettingsError, one_of
from mail_assets.settings.paths import absolute_path
from mail_assets.sources.open import check_source
from mail_assets.sources.urls import split_kind
from mail_assets.steps.wording import Wording

#: Older than any list named in this project. Changing it later orphans history.
FIRST_MONTH = "1995-01"

#: Text search configurations that PostgreSQL 18 ships.
LANGUAGES = (
    *("simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english"),
    *("estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian"),
    *("irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian"),
    *("russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)

#: A list's name is part of a partition key (no `|`, `,`, `[`, `]`), a path and a URL.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KEYS = {"source", "dialect", "language", "start", "charset"}
#: What stands above the lists, so that none can have this name.
_BOUNDS = ("first_month", "last_month")
_REMEDY = "write one with `mail-assets init`, or set MAIL_LISTS"


@dataclass(frozen=True)
class MailingList:
    """One mailing list of lists.toml.

    `source` is a folder, an https:// or an s3:// URL; `dialect` says how its mbox files are
    written, None where each archive is to be asked; `language` is a PostgreSQL text search
    configuration; `start` is its first month, "YYYY-MM"; `charset` is that of mail that names none,
    "" where it is windows-1252.
    """

    name: str
    source: str
    dialect: str | None
    language: str
    start: str
    charset: str = ""

    @property
    def wording(self) -> Wording:
        """What its mail is written in."""
        return Wording(self.language, self.charset)


class ListsFile(NamedTuple):
    """What a lists.toml says: the first and the last month of all lists, and the lists by name.

    Without a `last_month` new months keep coming.
    """

    first_month: str
    last_month: str | None
    lists: dict[str, MailingList]


class _Bounds(NamedTuple):
    """The first and the last month of all partitions."""

    first: str
    last: str | None


def read_lists(path: Path) -> ListsFile:
    """Read a lists.toml; the lists come sorted by name.

    A source without a scheme is a folder, relative to the file.

    Raises:
        SettingsError: the file is missing or wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError("MAIL_LISTS", str(path), f"no such file; {_REMEDY}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("MAIL_LISTS", str(path), f"not a readable TOML file: {error}") from None
    return parse_lists(text, path)


def check_name(place: str, name: str) -> None:
    """Check the name of a list.

    Raises:
        SettingsError: no list can have it.
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(place, name, "a list's name is letters, digits, '.', '_' and '-'")
    if name in _BOUNDS:
        raise SettingsError(place, name, "stands above the lists in lists.toml; use another name")


def parse_lists(text: str, path: Path) -> ListsFile:
    """Return what the text of a lists.toml at `path` says.

    Raises:
        SettingsError: it is wrong.
    """
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
    if not document:
        raise SettingsError("MAIL_LISTS", str(path), "names no list; add a [NAME] table")
    bounds = _Bounds(first_month, last_month)
    lists = {
        name: _mailing_list(f"{place} [{name}]", name, table, path.parent, bounds)
        for name, table in sorted(document.items())
    }
    return ListsFile(first_month, last_month, lists)


def _mailing_list(
    place: str, name: str, table: object, folder: Path, bounds: _Bounds
) -> MailingList:
    if not isinstance(table, dict):
        raise SettingsError(place, table, "must be a table with a source")
    check_name(place, name)
    if unknown := sorted(set(table) - _KEYS):
        raise SettingsError(f"{place} {unknown[0]}", table[unknown[0]], one_of(_KEYS))
    for key, value in table.items():
        if not isinstance(value, str):
            raise SettingsError(f"{place} {key}", value, "must be a string")
    source = _read_source(f"{place} source", table.get("source", ""), folder)
    dialect = table.get("dialect")
    if dialect is not None and dialect not in DIALECTS:
        raise SettingsError(f"{place} dialect", dialect, one_of(DIALECTS))
    language = table.get("language", "english")
    if language not in LANGUAGES:
        raise SettingsError(f"{place} language", language, one_of(LANGUAGES))
    start = table.get("start", bounds.first)
    _require_month(f"{place} start", start)
    if start < bounds.first:
        raise SettingsError(
            f"{place} start", start, f"must not be before first_month {bounds.first}"
        )
    if bounds.last and start > bounds.last:
        raise SettingsError(f"{place} start", start, f"must not be after last_month {bounds.last}")
    charset = table.get("charset", "")
    if charset and not is_legacy(charset):
        rule = (
            "must be a charset of 8-bit text such as koi8-r, euc-jp or gb2312; UTF-8 shows itself"
        )
        raise SettingsError(f"{place} charset", charset, rule)
    return MailingList(name, source, dialect, language, start, "-".join(charset.lower().split()))


def _read_source(name: str, value: str, folder: Path) -> str:
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
    if not isinstance(value, str) or not is_month(value):
        raise SettingsError(name, value, 'must be a month such as "1997-01"')
