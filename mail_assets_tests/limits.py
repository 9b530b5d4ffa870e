"""Upkeep of a LanceDB table as a test wants it due: with other limits for what may wait."""

from types import ModuleType

import pytest


def change_limits(
    monkeypatch: pytest.MonkeyPatch, maintenance: ModuleType, **limits: object
) -> None:
    """Replace some limits of vectors/lance/maintenance.py or words/lance/maintenance.py."""
    monkeypatch.setattr(maintenance, "LIMITS", maintenance.LIMITS._replace(**limits))
