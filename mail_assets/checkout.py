"""Places of the package's files: in a checkout next to the package, in a wheel inside it.

A checkout, also one installed with `pip install --editable`, has sql/ and dagster.yaml next to the
package. That tells the two apart.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def find_checkout() -> Path | None:
    """Return the root of the checkout that this package runs from; None in an installed wheel.

    Raises:
        FileNotFoundError: there are no SQL files in either place.
    """
    if (_PACKAGE / "sql").is_dir():
        return None
    root = _PACKAGE.parent
    if (root / "sql").is_dir() and (root / "pyproject.toml").is_file():
        return root
    raise FileNotFoundError(f"{_PACKAGE} has no sql/: install mail-assets again")


def sql_folder() -> Path:
    """Return the folder with the SQL files.

    Raises:
        FileNotFoundError: there is none.
    """
    return _root() / "sql"


def dagster_yaml() -> Path:
    """Return the configuration of the Dagster instance that comes with this version."""
    return _root() / "dagster.yaml"


def _root() -> Path:
    return find_checkout() or _PACKAGE
