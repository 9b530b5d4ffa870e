"""Read and check environment variables of an endpoint: base URL, API key, numbers."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from mail_assets.errors import WrongInputError

Environ = Mapping[str, str]


class VariableError(WrongInputError):
    """A wrong environment variable: its name, its value and what is allowed."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(name, value, allowed)


def read_url(env: Environ, name: str, default: str = "") -> str:
    """Return a base URL, such as https://api.openai.com/v1, without a slash at its end.

    Raises:
        VariableError: it is no http:// or https:// URL, or holds more than a place.
    """
    value = env.get(name) or default
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an IPv6 address without its bracket, a port that is no number
        usable = False
    if not usable or not value.isascii() or not value.isprintable() or " " in value:
        raise VariableError(name, value, "must be a base URL such as https://api.openai.com/v1")
    if "@" in value or "?" in value or "#" in value:
        raise VariableError(
            name, value, f"must be scheme, host and path only; a key is {key_of(name)}"
        )
    return value.rstrip("/")


def read_key(env: Environ, name: str) -> str:
    """Return a key, which may be empty.

    Raises:
        VariableError: it cannot be sent in a header. The message does not show it.
    """
    value = env.get(name, "").strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise VariableError(name, "***", "must be one word of ASCII characters")
    return value


def key_of(url_variable: str) -> str:
    """Return the variable of the key that goes with a URL's."""
    return f"{url_variable.removesuffix('_URL')}_KEY"


def read_number(env: Environ, name: str, default: int, least: int, most: int) -> int:
    """Return a whole number.

    Raises:
        VariableError: it is none, or not from `least` to `most`.
    """
    value = env.get(name) or str(default)
    if not (value.isascii() and value.isdigit() and least <= int(value[:9]) <= most):
        raise VariableError(name, value, f"must be a whole number from {least} to {most}")
    return int(value)
