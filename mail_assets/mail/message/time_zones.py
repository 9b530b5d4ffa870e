"""Time zones as Date fields write them: `+0100`, `EST`, `(MET DST)`, `Eastern Daylight Time`."""

import re

MAX_OFFSET = 14 * 60  # minutes: Kiribati is the farthest from Greenwich

_HOURS = {
    **dict.fromkeys(["z", "ut", "utc", "gmt", "wet"], 0),
    **dict.fromkeys(["bst", "cet", "met", "mez", "west"], 1),
    **dict.fromkeys(["cest", "mest", "mesz", "metdst", "eet", "ze2"], 2),
    **dict.fromkeys(["msk", "eest"], 3),
    **{"sast": 2, "msd": 4, "hkt": 8, "sgt": 8, "awst": 8, "jst": 9, "kst": 9, "aest": 10},
    **{"aedt": 11, "nzst": 12, "nzdt": 13, "brst": -2, "brt": -3, "ast": -4, "adt": -3},
    **{"akst": -9, "akdt": -8, "hst": -10},
    **{"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7},
}
_US_ZONE = re.compile(r"\b(eastern|central|mountain|pacific)\s+(standard|daylight)\b")
# Readings that the PostgreSQL archives settled on, where a rule would say something else.
_ODD_ZONES = {"+-4-30": 270, "+-100": 60, "+0-900": -540, "mexico/general": -300}

_COMMENT = re.compile(r"\(([^()]*)\)?")
_OFFSET = re.compile(
    r"(?:gmt|utc|ut)?\s*([+-]+)\s*(\d{1,2})[:.-]?(\d{2})?(?!\d)|(\d{2})(\d{2})(?!\d)"
)
_ZONE_NAME = re.compile(r"[a-z]{1,6}\d?(?![a-z])")


def parse_offset(tail: str) -> tuple[int, bool]:
    """Minutes east of Greenwich in what follows the time, and whether that is sure.

    An impossible offset gives way to the zone's name in the comment: `+6700 (EST)` is EST.
    """
    zone = _COMMENT.sub(" ", tail).strip()
    minutes = _ODD_ZONES.get(zone)
    if minutes is not None:
        return minutes, False
    number = _OFFSET.match(zone)
    if number:
        sign = -1 if (number[1] or "+").endswith("-") else 1
        hours, rest = int(number[2] or number[4]), int(number[3] or number[5] or 0)
        if hours * 60 + rest <= MAX_OFFSET and rest < 60:
            return sign * (hours * 60 + rest), len(number[1] or "") == 1
    for name in (zone, *_COMMENT.findall(tail)):
        named = _named_zone(name.strip())
        if named is not None:
            return named, number is None and " " not in name.strip()
    return 0, not zone


def _named_zone(name: str) -> int | None:
    if us := _US_ZONE.search(name):
        return _HOURS[us[1][0] + ("s" if us[2] == "standard" else "d") + "t"] * 60
    found = _ZONE_NAME.match(name)
    hours = _HOURS.get(found[0]) if found else None
    return None if hours is None else hours * 60
