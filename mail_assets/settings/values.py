"""Define a variable of the table, and the parsers that check a text and return a value.

A parser takes the name of the variable, for errors, and its text, which is not empty. It opens
nothing. A URL is checked by the package that uses it, which is imported only if the URL is set.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from mail_assets.environment import VARIABLES
from mail_assets.errors import WrongInputError

T = TypeVar("T")

#: The name of a variable and its text -> its value.
Parser = Callable[[str, str], T]
Environ = Mapping[str, str]
Network = IPv4Network | IPv6Network

#: Upper limit of numbers that have no other limit.
MAX_COUNT = 99_999

#: Up to the last @: a password may contain the characters that make its URL invalid.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]*@")
_SCHEME = re.compile(r"[a-z][a-z0-9+]*://")
#: What Dagster accepts as an owner.
_OWNER = re.compile(r"team:.+|[^@\s]++@[^@\s.]++(?:\.[^@\s.]++)+")
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?", re.ASCII)


@dataclass(frozen=True)
class Variable(Generic[T]):
    """An environment variable with its default; the value of a `secret` is never printed."""

    name: str
    default: T
    parse: Parser[T]
    help: str
    secret: bool = False

    def read(self, environ: Environ) -> T:
        """Return the value of the variable, or its default."""
        text = environ.get(self.name)
        return self.parse(self.name, text) if text else self.default


@dataclass(frozen=True)
class Section:
    """A titled part of the table; `shared`: other programs read its variables too."""

    title: str
    shared: bool = False
    rows: list[Variable[Any]] = field(default_factory=list)

    def add(
        self, name: str, default: T, parse: Parser[T], help: str, *, secret: bool = False
    ) -> Variable[T]:
        """Add a row."""
        row = Variable(name, default, parse, help, secret)
        self.rows.append(row)
        return row


class SettingsError(WrongInputError):
    """A wrong setting: a line with name, value and rule; credentials in a URL become `***`."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        message = f"{name}={value!r}: {allowed}"
        for credentials in _CREDENTIALS.findall(repr(value)):
            message = message.replace(credentials, "***@")
        super().__init__(message)


def hide_secrets(url: str) -> str:
    """Return the part of a URL or DSN that is safe to print: its scheme, then `***`."""
    scheme = _SCHEME.match(url)
    return f"{scheme[0]}***" if scheme else "***"


def one_of(values: Collection[str]) -> str:
    """Return the rule of an error that lists the allowed values."""
    return f"allowed: {', '.join(sorted(values))}"


def text(name: str, value: str) -> str:
    """Accept any text unchanged."""
    return value


def word(name: str, value: str) -> str:
    """Strip spaces and line ends around a text."""
    return value.strip()


def choice(*allowed: str) -> Parser[str]:
    """Return a parser that allows some values."""

    def parse(name: str, value: str) -> str:
        if value not in allowed:
            raise SettingsError(name, value, one_of(allowed))
        return value

    return parse


def count(unit: str, most: int = MAX_COUNT) -> Parser[int]:
    """Return a parser of numbers from 0; `unit` (and the meaning of 0) is part of the error."""
    return _number(0, most, f"must be 0 to {most} {unit}")


def whole_number(least: int, most: int) -> Parser[int]:
    """Return a parser of numbers between two bounds."""
    return _number(least, most, f"must be a whole number from {least} to {most}")


def _number(least: int, most: int, rule: str) -> Parser[int]:
    def parse(name: str, value: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise SettingsError(name, value, rule)
        return int(value)

    return parse


def short_text(most: int) -> Parser[str]:
    """Return a parser of texts of at most `most` bytes in UTF-8; it keeps trailing spaces."""

    def parse(name: str, value: str) -> str:
        try:
            usable = len(value.encode()) <= most and "\0" not in value
        except UnicodeEncodeError:
            usable = False
        if not usable:
            raise SettingsError(name, value, f"must be text of at most {most} bytes")
        return value

    return parse


def key(name: str, value: str) -> str:
    """Parse a key that is sent in a header; the error does not show it."""
    value = value.strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise SettingsError(name, "***", "must be one word of ASCII characters")
    return value


def login(name: str, value: str) -> str:
    """Parse a user and a password; the error does not show them."""
    if ":" not in value:
        raise SettingsError(name, "***", "must be USER:PASSWORD")
    return value


def forget_key(name: str, value: str) -> str:
    """Check the key for digests of forgotten mail; the error does not show it."""
    from mail_assets.tables.removals import parse_key

    return _checked(parse_key, name, value, shown="***")


def webhook(name: str, value: str) -> str:
    """Check the URL of a webhook; it is a secret, so the error does not show it."""
    from mail_assets.http.requests import check_webhook

    return _checked(check_webhook, name, value.strip(), shown="***") if value.strip() else ""


def mail_dsn(name: str, value: str) -> str:
    """Check the DSN of the mail database; the error does not show its password."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    if value.startswith(("postgresql+", "postgres+")):
        rule = "must begin with postgresql://, without a driver's name"
        raise SettingsError(name, hide_secrets(value), rule)
    try:
        conninfo_to_dict(value)
    except ProgrammingError:  # its message may repeat the password
        rule = "must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        raise SettingsError(name, hide_secrets(value), rule) from None
    return value


def dagster_url(name: str, value: str) -> str:
    """Check the URL of Dagster's storage; dagster-postgres supports one driver only."""
    if not value.startswith("postgresql+psycopg2://"):
        raise SettingsError(name, hide_secrets(value), "must begin with postgresql+psycopg2://")
    return value


def endpoint_url(name: str, value: str) -> str:
    """Parse the base URL of a server with OpenAI's API; remove a trailing slash."""
    if not _is_http_url(value) or not value.isascii() or not value.isprintable() or " " in value:
        rule = "must be a base URL such as https://api.openai.com/v1"
        raise SettingsError(name, value, rule)
    if "@" in value or "?" in value or "#" in value:
        rule = f"must have scheme, host and path only; put a key in {name.removesuffix('_URL')}_KEY"
        raise SettingsError(name, value, rule)
    return value.rstrip("/")


def site_url(example: str) -> Parser[str]:
    """Return a parser of a site's URL; it removes a trailing slash."""

    def parse(name: str, value: str) -> str:
        url = value.strip().rstrip("/")
        if url and (not _is_http_url(url) or any(sign in url for sign in " @?#<>|")):
            raise SettingsError(name, url, f"must be a base URL such as {example}")
        return url

    return parse


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as an IPv6 address without its bracket, or a port abc
        return False


def owners(name: str, value: str) -> tuple[str, ...]:
    """Parse e-mail addresses and "team:NAME", separated by commas."""
    found = _split(value)
    for owner in found:
        if not _OWNER.fullmatch(owner):
            raise SettingsError(name, owner, "an owner is an e-mail address or team:NAME")
    return found


def hosts(name: str, value: str) -> tuple[str, ...]:
    """Parse host names, separated by commas; each may have a port."""
    found = _split(value)
    for host in found:
        if not _HOST.fullmatch(host):
            raise SettingsError(name, host, "must be names such as archive.example.org")
    return found


def networks(name: str, value: str) -> tuple[Network, ...]:
    """Parse addresses and networks, separated by commas."""
    found = _split(value)
    try:
        return tuple(map(ip_network, found))
    except ValueError as error:
        rule = f"must be addresses or networks such as 127.0.0.1,10.0.0.0/8: {error}"
        raise SettingsError(name, ",".join(found), rule) from None


def _split(value: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in value.split(",") if one.strip())


def store(name: str, value: str) -> str:
    """Parse the URL or folder of the store; make a folder absolute."""
    from mail_assets.store.open import check_store, store_folder

    url = _location(check_store, name, value, "")
    if folder := store_folder(url):
        _check_folder(name, value, folder)
    return url


def vector_bucket(name: str, value: str) -> str:
    """Parse the URL of a vector bucket; make a folder after `lance:` absolute."""
    from mail_assets.vectors.open import check_bucket_url

    return _location(check_bucket_url, name, value, "lance:")


def word_index(name: str, value: str) -> str:
    """Parse the URL of a word index; make a folder after `lance:` absolute."""
    from mail_assets.words.open import check_words_url

    return _location(check_words_url, name, value, "lance:")


def _location(check: Callable[[str], object], name: str, value: str, scheme: str) -> str:
    """Check a URL; make a folder absolute, because other processes have other working folders."""
    _checked(check, name, value)
    if "://" in value or not value.startswith(scheme):
        return value
    folder = absolute_path(name, value.removeprefix(scheme))
    _check_folder(name, value, folder)
    return f"{scheme}{folder}"


def _checked(check: Callable[[str], object], name: str, value: str, shown: str = "") -> str:
    """Return a value that passes `check`; turn its ValueError into a SettingsError."""
    try:
        check(value)
    except ValueError as error:
        raise SettingsError(name, shown or value, str(error)) from None
    return value


def folder(name: str, value: str) -> Path:
    """Parse the path of a folder, which need not exist; make it absolute."""
    found = absolute_path(name, value)
    _check_folder(name, value, found)
    return found


def xdg_folder(default: str) -> Parser[Path]:
    """Return a parser of an XDG base directory; as specified, a relative path is ignored."""

    def parse(name: str, value: str) -> Path:
        return Path(value if value.startswith("/") else default)

    return parse


def judged_folder(name: str, value: str) -> Path:
    """Parse the path of a folder that has both files of a judged set."""
    from mail_assets.evaluation.judged import QRELS, QUERIES

    found = folder(name, value)
    for file in (QUERIES, QRELS):
        if not (found / file).is_file():
            rule = f"must be a folder with {QUERIES} and {QRELS}: no {file}"
            raise SettingsError(name, value, rule)
    return found


def absolute_path(name: str, value: str, folder: Path | None = None) -> Path:
    """Return an absolute path; `value` is relative to `folder`, or to the current directory.

    Raises:
        SettingsError: "~user" is unknown, HOME is not absolute, or there is no current directory.
    """
    if Path(value).parts[:1] == ("~",) and not VARIABLES.get("HOME", "/").startswith("/"):
        raise SettingsError(name, value, "HOME is not an absolute path: set it, or do not use ~")
    try:
        return ((folder or Path()) / Path(value).expanduser()).absolute()
    except (RuntimeError, OSError) as error:
        raise SettingsError(name, value, f"not a usable path: {error}") from None


def _check_folder(name: str, value: str, folder: Path) -> None:
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not there.is_dir():
        which = "this" if there == folder else str(there)
        raise SettingsError(name, value, f"must be a folder, but {which} is not; set another path")
