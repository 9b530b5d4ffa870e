"""The README and the docs name what there is to set."""

import re

import pytest

from mail_assets_tests.conftest import REPOSITORY

#: A whole name: "MAIL_CHAT_" is a beginning.
VARIABLE = re.compile(r"\b(?:MAIL|DAGSTER)_[A-Z_]*[A-Z]\b")
#: The first cell of a row of a table.
CELL = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def variables(folder: str, pattern: str) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in (REPOSITORY / folder).rglob(pattern))
    return {name for text in texts for name in VARIABLE.findall(text)}


def rows(text: str) -> list[str]:
    """Return the variables that have a row; "_B" behind "MAIL_WEB_A" is MAIL_WEB_B."""
    found: list[str] = []
    for cell in CELL.findall(text):
        names: list[str] = []
        for name in re.findall(r"`(\w+)`", cell):
            if name.startswith("_") and names:
                name = names[0].rpartition("_")[0] + name
            names += VARIABLE.findall(name)
        found += names
    return found


def settings_table() -> list[str]:
    readme = (REPOSITORY / "README.md").read_text()
    return rows(readme.partition("\n## Settings\n")[2].partition("\n### ")[0])


def test_what_is_abbreviated_in_a_row_is_a_variable_too() -> None:
    text = "| `MAIL_WEB_READS`, `_EXPORTS` | `1` |\n| `MAIL_CHAT_` | |\n| see `MAIL_HOME` | |\n"
    assert rows(text) == ["MAIL_WEB_READS", "MAIL_WEB_EXPORTS"]


def test_every_variable_has_one_row() -> None:
    assert len(settings_table()) == len({*settings_table()})


def test_every_variable_of_the_settings_has_a_row_here_or_in_the_docs() -> None:
    pages = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").rglob("*.md"))
    explained = {*settings_table(), *(name for page in pages for name in rows(page))}
    used = variables("mail_assets/settings", "*.py") | variables("mail_assets/openai", "*.py")
    assert used - explained == set()


@pytest.mark.parametrize("name", sorted({*settings_table()}))
def test_every_variable_that_is_explained_exists(name: str) -> None:
    assert name in variables("mail_assets", "*.py")
