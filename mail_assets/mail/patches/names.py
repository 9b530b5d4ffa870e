"""File names in diffs: their quotes, prefixes and times, as git and diff write them."""

import re

NO_FILE = "/dev/null"

_TIME = re.compile(r"\s{1,9}(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s)")
_HERE = re.compile(r"\A(?:\.{1,2}/+)++")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_QUOTE = {code: f"\\{char}" for char, code in _ESCAPES.items()}


def split_names(text: str) -> tuple[str, str]:
    """Return both names of a "diff --git" line, without "a/" and "b/"."""
    if text.startswith('"') and (end := _end_of_quoted(text)):
        return _strip(unquote(text[:end])), _strip(unquote(text[end + 1 :]))
    if text.endswith('"') and (start := text.find(' "')) > 0:
        return _strip(text[:start]), _strip(unquote(text[start + 1 :]))
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " ":
        old, new = _strip(text[:middle]), _strip(text[middle + 1 :])
        if old == new:
            return old, new
    if (at := text.find(" b/")) > 0:
        return _strip(text[:at]), _strip(text[at + 1 :])
    old, _, new = text.partition(" ")
    return _strip(old), _strip(new or old)


def _end_of_quoted(text: str) -> int:
    at = 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            return at + 1
        at += 1
    return 0


def _strip(name: str) -> str:
    """Return a name without ./ and ../, and without git's letter: a/, b/, i/, w/, c/, o/."""
    if name[:1] == "." and (here := _HERE.match(name)):
        return name[here.end() :]
    return name[2:] if name[1:2] == "/" and name[0] in "abciwo" else name


def read_name(line: str) -> str:
    """Return the name in a "---" line: without a time after it."""
    line = line.rstrip()
    if line.startswith('"') and (end := _end_of_quoted(line)):
        return unquote(line[:end])
    name = line.split("\t", 1)[0]
    if time := _TIME.search(name):
        name = name[: time.start()]
    return name.rstrip()


def plain_names(old: str, new: str) -> tuple[str, str]:
    """Return the names of a diff without git's header, as it is to be applied."""
    if old == NO_FILE or new == NO_FILE:
        name = new if old == NO_FILE else old
        name = _strip(name)
        return name, name
    if old == new:
        return _strip(old), _strip(new)
    old, new = _HERE.sub("", old, count=1), _HERE.sub("", new, count=1)
    old_rest, new_rest = old.partition("/")[2], new.partition("/")[2]
    if old_rest and old_rest == new_rest:
        return old_rest, new_rest
    new = _strip(new) if old[1:2] == "/" else new
    return new, new  # x.c.orig and x.c: one file


def last_name(line: str) -> str:
    """Return the last name of a "diff -r a b" line, "" if it ends with an option."""
    word = line.rstrip().rpartition(" ")[2]
    return "" if word.startswith("-") else _strip(word)


def unquote(name: str) -> str:
    """Return a name that git may have quoted as C does."""
    name = name.strip()
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    raw, at, inner = bytearray(), 0, name[1:-1]
    for escape in _ESCAPE.finditer(inner):
        raw += inner[at : escape.start()].encode(errors="surrogatepass")
        code = escape[1]
        raw.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 255)
        at = escape.end()
    raw += inner[at:].encode(errors="surrogatepass")
    return raw.decode(errors="replace").replace("\0", "\ufffd")


def quote(name: str) -> str:
    """Return a name as git writes it with its default core.quotePath."""
    raw = name.encode(errors="surrogatepass")
    if all(31 < byte < 127 and byte not in b'"\\' for byte in raw):
        return name
    quoted = (
        _QUOTE.get(byte) or (chr(byte) if 31 < byte < 127 else f"\\{byte:03o}") for byte in raw
    )
    return f'"{"".join(quoted)}"'


def format_name(name: str) -> str:
    """Return a name for a "---" line, where git writes a tab after one with a blank."""
    quoted = quote(name)
    return f"{quoted}\t" if " " in name else quoted
