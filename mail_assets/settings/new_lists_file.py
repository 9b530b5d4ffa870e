"""A first lists.toml: the text that `mail-assets init` writes."""

import json
from collections.abc import Mapping
from itertools import starmap
from pathlib import Path

from mail_assets.settings.errors import SettingsError
from mail_assets.settings.lists_file import FIRST_MONTH, parse_lists

_HEAD = """\
# The mailing lists, one table each. A list's name is permanent: it is part of every key.
#
#   source    a folder of monthly archives, a Maildir, a folder of .eml files, one big mbox file
#             or a public-inbox (paths are relative to this file); s3://bucket/prefix; or
#             https://..., a page that links to the archives or a URL with {yyyymm}, {yyyy-mm} or
#             {yyyy-Month} in its path. For servers of a kind: public-inbox:https://...,
#             hyperkitty:https://... or ponymail:https://... (docs/sources.md)
#   dialect   how its mbox files are written: plain, mboxrd, mboxo, pg (postgresql.org) or
#             pipermail. Leave it out: each archive tells by its bytes, and a check of
#             mbox_archives names the months where a dialect set here is not the right one.
#   language  a PostgreSQL text search configuration: english, spanish, simple, ...
#   charset   that of mail that names none and is not UTF-8: koi8-r, euc-jp, gb2312, ...; else
#             windows-1252
#   start     its first month, "YYYY-MM"

# The oldest month of any list. Choose it once: changing it later orphans history.
"""

_EXAMPLE = """
# [my-list]
# source = "/srv/archives/my-list"
# language = "english"
# start = "2010-03"
"""


def format_lists_file(tables: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of a lists.toml with some lists; without any, with an example in comments.

    `tables` has the table of each list by its name: source, dialect, language, start.
    """
    starts = [table["start"] for table in tables.values() if "start" in table]
    head = f"{_HEAD}first_month = {_toml_string(min(starts, default=FIRST_MONTH))}\n"
    return head + ("".join(starmap(_format_table, tables.items())) or _EXAMPLE)


def write_lists_file(path: Path, tables: Mapping[str, Mapping[str, str]]) -> None:
    """Write a new lists.toml, whose lists are checked first.

    Raises:
        SettingsError: a list is wrong, the file exists, or it cannot be written.
    """
    text = format_lists_file(tables)
    if tables:
        parse_lists(text, path)
    try:
        content = text.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
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
    return json.dumps(value, ensure_ascii=False)  # its escapes are TOML's too
