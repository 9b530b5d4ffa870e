"""Months in the names of archives: read from a file name, written into a URL template."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)  # fixed English, as pipermail writes them: the locale must not change what a URL means
_NUMBERS = {name[:3].lower(): number for number, name in enumerate(_NAMES, 1)}

_WORDS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _NAMES)
_ARCHIVE = re.compile(
    rf"""(?:.*[^0-9])?                                  # digits in front: an id, not a date
         (?P<year>19[7-9][0-9]|20[0-9][0-9])
         (?:-?(?P<number>0[1-9]|1[0-2])|-(?P<word>{_WORDS}))
         (?:\.mbox|\.txt)?
         (?:\.gz|\.bz2|\.xz|\.zst)?""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

PLACEHOLDERS = ("{yyyymm}", "{yyyy-mm}", "{yyyy-Month}")


def month_in_name(name: str) -> str | None:
    """Return the month that an archive's file name ends in, or None if it names none.

    The forms are YYYYMM, YYYY-MM and YYYY-Month (English, whole or three letters, any case), from
    1970 to 2099, followed by nothing but `.mbox` or `.txt` and a compression suffix.
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
    """Group the places (names, keys, URLs) of archives by month, in order; others are left out.

    `name_of` gives the file name of a place.
    """
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
    """Say whether a URL has a placeholder for the month."""
    return any(placeholder in url for placeholder in PLACEHOLDERS)
