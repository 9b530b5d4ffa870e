"""Changed limits for the upkeep of a LanceDB table, so that a test can make it due."""

from types import ModuleType

import pytest


def change_limits(
    monkeypatch: pytest.MonkeyPatch, maintenance: ModuleType, **limits: object
) -> None:
    """Replace some limits of vectors/lance.py or words/lance.py."""
    monkeypatch.setattr(maintenance, "LIMITS", maintenance.LIMITS._replace(**limits))
