"""Where the files of the package are that are not Python: in a checkout, or in an installed wheel.

A checkout (also one that is installed with `pip install --editable`) keeps sql/ and dagster.yaml
beside the package; the wheel carries them inside. The folder mail_assets/sql tells the two apart.
"""

from importlib import resources
from pathlib import Path

_PACKAGE = Path(str(resources.files("mail_assets")))


def find_checkout() -> Path | None:
    """Return the root of the checkout that this package runs from; None in an installed wheel.

    Raises:
        FileNotFoundError: neither has the SQL files.
    """
    if (_PACKAGE / "sql").is_dir():
        return None
    root = _PACKAGE.parent
    if (root / "sql").is_dir() and (root / "pyproject.toml").is_file():
        return root
    raise FileNotFoundError(f"{_PACKAGE} has no sql/: install mail-assets again")


def data_path(name: str) -> Path:
    """Return the path of "sql" or "dagster.yaml": in the checkout, or in the installed package."""
    return (find_checkout() or _PACKAGE) / name
