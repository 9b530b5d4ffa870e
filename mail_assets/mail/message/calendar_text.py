"""What an invitation says (iCalendar, RFC 5545), as text."""

import re

MAX_COMPONENTS = 20  # events, tasks and notes of one calendar

_UNFOLD = re.compile(r"\n[ \t]")
_LINE = re.compile(r"([A-Za-z0-9-]{1,60}+)((?:;(?:\"[^\"]*+\"|[^\":])*+)?):(.*)", re.S)
_ESCAPE = re.compile(r"\\([\\;,nN])")
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?\Z")
_ZONE = re.compile(r';TZID="?([^";:]{1,100})', re.I)
_LABELS = {
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "LOCATION": "Location",
}


def calendar_to_text(calendar: str) -> str:
    """Summary, times, place and description of each event, a blank line between them."""
    events: list[dict[str, str]] = []
    inside = ""
    for line in _UNFOLD.sub("", calendar).split("\n"):
        name, parameters, value = _split_line(line)
        if name == "BEGIN" and not inside and value.upper() in _COMPONENTS:
            if len(events) == MAX_COMPONENTS:
                break
            events.append({})
            inside = value
        elif name == "BEGIN" and inside:
            inside += f" {value}"  # an alarm, whose description is not the event's
        elif name == "END":
            inside = inside.rpartition(" ")[0]
        elif inside and " " not in inside:
            events[-1].setdefault(name, _read_value(name, parameters, value))
    return "\n\n".join(filter(None, map(_format_event, events)))


def _split_line(line: str) -> tuple[str, str, str]:
    """Name, parameters and value of a content line; "" for each where it is none."""
    found = _LINE.match(line)
    return (found[1].upper(), found[2], found[3].strip()) if found else ("", "", "")


def _read_value(name: str, parameters: str, value: str) -> str:
    value = _ESCAPE.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value)
    time = _TIME.match(value) if name in ("DTSTART", "DTEND", "DUE") else None
    if time is None:
        return value.strip()
    year, month, day, hour, minute, utc = time.groups()
    zone = _ZONE.search(parameters)
    clock = f" {hour}:{minute}" if hour else ""
    return f"{year}-{month}-{day}{clock}{' UTC' if utc else f' {zone[1]}' if zone else ''}"


def _format_event(event: dict[str, str]) -> str:
    lines = [event["SUMMARY"]] if event.get("SUMMARY") else []
    lines += [f"{label}: {event[name]}" for name, label in _LABELS.items() if event.get(name)]
    if event.get("DESCRIPTION"):
        lines += ["", event["DESCRIPTION"]]
    return "\n".join(lines)
