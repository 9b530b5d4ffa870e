"""The error for a wrong setting, which never repeats a secret."""

import re
from collections.abc import Collection

#: Up to the last @: a password may contain the characters that make its URL invalid.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]*@")
_SCHEME = re.compile(r"[a-z][a-z0-9+]*://")


class SettingsError(ValueError):
    """A wrong setting: one line with its name, its value and what is allowed.

    Credentials in a URL are replaced by `***`.
    """

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
    """Return the last part of an error's message that lists the allowed values."""
    return f"allowed: {', '.join(sorted(values))}"
