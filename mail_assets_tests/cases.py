"""Tables of named cases; pytest prints the names."""

from collections.abc import Mapping
from typing import Any

import pytest


def cases(names: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a test with each row of a table; `names` are its parameters, separated by ", "."""
    is_row = ", " in names
    rows = [pytest.param(*(row if is_row else (row,)), id=name) for name, row in table.items()]
    return pytest.mark.parametrize(names.split(", "), rows)
