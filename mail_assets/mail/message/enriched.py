"""Convert text/enriched (RFC 1896) and the older text/richtext (RFC 1341) to text."""

import re

_PARAMETERS = re.compile(r"<param>[^<]{0,1000}+</param>", re.I)
_COMMAND = re.compile(r"</?(?P<name>[a-z0-9-]{1,60}+)>", re.I)
_LINE_ENDS = re.compile(r"\n+")
_SHAPING = {"nl": "\n", "np": "\n", "lt": "<"}  # of richtext


def enriched_to_text(text: str) -> str:
    """The text without its commands: one line end is a space, n of them are n - 1."""
    text = _PARAMETERS.sub("", text).replace("<<", "\0")
    text = _LINE_ENDS.sub(lambda ends: "\n" * (len(ends[0]) - 1) or " ", text)
    text = _COMMAND.sub(lambda command: _SHAPING.get(command["name"].lower(), ""), text)
    return text.replace("\0", "<").strip()
