"""What compose.yaml says of its services, with its variables filled in as Compose does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: ${NAME}, ${NAME:-default}, ${NAME:?error}; and $$ for a dollar sign.
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")


@dataclass(frozen=True)
class Service:
    """A service: its command line, environment, volumes ("SOURCE:TARGET[:ro]") and health check.

    `needs` are the services that must be healthy before it starts; `replicas` how many there are.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    volumes: tuple[str, ...]
    healthcheck: tuple[str, ...]
    needs: tuple[str, ...]
    replicas: int

    @property
    def is_ours(self) -> bool:
        """Whether it runs the image of this repository."""
        return "MAIL_LOCAL_STATE" in self.environment


def read_services(path: Path, environ: Mapping[str, str]) -> dict[str, Service]:
    """Return the services of a compose.yaml; `environ` has what a .env file beside it would.

    Raises:
        ValueError: a variable that must be set is not.
    """
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    filled = fill_in(document["services"], environ)
    return {name: _service(name, found) for name, found in filled.items()}


def fill_in(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a YAML value with the variables in its texts replaced."""
    if isinstance(value, dict):
        return {key: fill_in(one, environ) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, environ) for one in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _replace(found, environ), value)
    return value


def _replace(found: re.Match[str], environ: Mapping[str, str]) -> str:
    dollar, name, kind, text = found.groups()
    if dollar:
        return "$"
    if kind == "?" and not environ.get(name):
        raise ValueError(f"{name}: {text}")
    return environ.get(name) or (text if kind == "-" else "")


def _service(name: str, found: Mapping[str, Any]) -> Service:
    return Service(
        name,
        tuple(found["command"]) if "command" in found else (),
        {key: str(value) for key, value in found.get("environment", {}).items()},
        tuple(found.get("volumes", ())),
        tuple(found["healthcheck"]["test"]),
        tuple(found.get("depends_on", ())),
        int(found.get("deploy", {}).get("replicas", 1)),
    )
