"""Parse the URLs of sources, and the months in names of archives and in URL templates.

A malformed URL raises a ValueError that says what is wrong.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

#: Kinds that may stand before a path or URL; a folder or file rarely needs one.
FOLDER_KINDS = ("maildir", "eml", "mh", "mbox")
HTTP_KINDS = ("public-inbox-mbox", "hyperkitty", "ponymail")
#: A public-inbox may be a folder or a URL.
KINDS = (*FOLDER_KINDS, "public-inbox", *HTTP_KINDS)


def split_kind(source: str) -> tuple[str, str]:
    """Return the kind and the place of "kind:place"; the kind is "" if there is none."""
    kind, colon, place = source.partition(":")
    return (kind, place) if colon and kind in KINDS else ("", source)


def url_scheme(url: str) -> str:
    """Return "file", "s3", "http" or "https"; a plain path is a "file".

    Raises:
        ValueError: the scheme is another one, or the URL is empty.
    """
    if not url.strip():
        raise ValueError("a source is needed: a folder, http(s)://, or s3://bucket/prefix")
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower() if separator else "file"
    if scheme not in ("file", "s3", "http", "https"):
        raise ValueError(
            f"the scheme {scheme}:// is not supported; use a folder's path, file://,"
            " http(s):// or s3://bucket/prefix"
        )
    return scheme


def folder_path(url: str) -> Path:
    """Return the folder that a path or a file:// URL names.

    Raises:
        ValueError: the URL names another machine.
    """
    if "://" not in url:
        return Path(url).expanduser()
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ValueError(f"{url!r} names no folder of this machine; write file:///folder")
    return Path(unquote(parts.path))


def s3_location(url: str) -> tuple[str, str]:
    """Return the bucket and the prefix ("" or ending in a slash) of s3://bucket/prefix.

    Raises:
        ValueError: the URL has no bucket, or has credentials.
    """
    bucket, _, prefix = url.partition("://")[2].partition("/")
    if not bucket or "@" in bucket:
        raise ValueError(f"{url!r} names no bucket; write s3://bucket/prefix")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


def check_http_url(url: str) -> None:
    """Raise ValueError if an http(s) URL has no host, a password or a stray brace."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL has a user name; put user:password in MAIL_HTTP_AUTH instead")
    if not parts.hostname:
        raise ValueError(f"{url!r} has no host; write {parts.scheme}://host/path")
    _ = parts.port  # a bad port is reported only here, as ValueError
    if "{" in parts.netloc or "{" in fill_template(url, "2000-01"):
        raise ValueError(
            f"{url!r} has an unknown placeholder; its path may have {', '.join(PLACEHOLDERS)}"
        )


_HYPERKITTY = re.compile(
    r"(?P<root>/(?:[^/]{1,200}/){0,20})list/(?P<name>[^/@]{1,200}@[^/@]{1,200})/?"
)
_PONYMAIL = re.compile(r"(?P<list>[^@:&?=#/*]{1,200})@(?P<domain>[^@:&?=#/*]{1,200})")
_HYPERKITTY_EXAMPLE = "https://lists.example.org/archives/list/dev@example.org/"
_PONYMAIL_EXAMPLE = "https://lists.example.org/list.html?dev@project.example.org"


def hyperkitty_export(url: str) -> str:
    """Return the URL of a HyperKitty list's export, without the end of its file name.

    Raises:
        ValueError: `url` is not the page of a list.
    """
    parts = urlsplit(url)
    found = _HYPERKITTY.fullmatch(unquote(parts.path))
    if found is None or parts.query:
        raise ValueError(f"{url!r} is not the page of a list, such as {_HYPERKITTY_EXAMPLE}")
    name = quote(found["name"], safe="@")
    return f"{parts.scheme}://{parts.netloc}{quote(found['root'])}list/{name}/export/{name}"


def ponymail_api(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL of Pony Mail's API, ending in a slash, and the parameters for the list.

    Raises:
        ValueError: `url` names no list.
    """
    parts = urlsplit(url)
    found = _PONYMAIL.fullmatch(unquote(parts.query).partition(":")[0])
    if found is None:
        raise ValueError(f"{url!r} is not the page of a list, such as {_PONYMAIL_EXAMPLE}")
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/api/", found.groupdict()


_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)  # English as in pipermail: the locale must not change what a URL means
_NUMBERS = {name[:3].lower(): number for number, name in enumerate(_NAMES, 1)}

_WORDS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _NAMES)
_ARCHIVE = re.compile(
    rf"""(?:.*[^0-9])?                                  # digits before it: an id, not a date
         (?P<year>19[7-9][0-9]|20[0-9][0-9])
         (?:-?(?P<number>0[1-9]|1[0-2])|-(?P<word>{_WORDS}))
         (?:\.mbox|\.txt)?
         (?:\.gz|\.bz2|\.xz|\.zst)?""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

PLACEHOLDERS = ("{yyyymm}", "{yyyy-mm}", "{yyyy-Month}")


def month_in_name(name: str) -> str | None:
    """Return the month at the end of an archive's file name, or None if there is none.

    The forms are YYYYMM, YYYY-MM and YYYY-Month (in English, in full or three letters, any case),
    from 1970 to 2099. Only `.mbox` or `.txt` and a compression suffix may follow.
    """
    found = _ARCHIVE.fullmatch(name)
    if found is None:
        return None
    word = found["word"]
    number = int(found["number"]) if word is None else _NUMBERS[word[:3].lower()]
    return f"{found['year']}-{number:02d}"


def group_by_month(
    places: Iterable[str], name_of: Callable[[str], str] = str
) -> dict[str, list[str]]:
    """Group places by the month in their `name_of`, in order; drop those without a month."""
    months: defaultdict[str, list[str]] = defaultdict(list)
    for place in sorted(set(places)):
        month = month_in_name(name_of(place))
        if month is not None:
            months[month].append(place)
    return {month: months[month] for month in sorted(months)}


def fill_template(template: str, month: str) -> str:
    """Write `month` into every placeholder of a URL template."""
    year, number = month.split("-")
    values = (f"{year}{number}", month, f"{year}-{_NAMES[int(number) - 1]}")
    for placeholder, value in zip(PLACEHOLDERS, values, strict=True):
        template = template.replace(placeholder, value)
    return template


def is_template(url: str) -> bool:
    """Return whether a URL has a placeholder for the month."""
    return any(placeholder in url for placeholder in PLACEHOLDERS)
