"""The README and the docs name what there is to set."""

import re

import pytest

from mail_assets_tests.conftest import REPOSITORY

#: A whole name: "MAIL_CHAT_" is a beginning.
VARIABLE = re.compile(r"\b(?:MAIL|DAGSTER)_[A-Z_]*[A-Z]\b")


def variables(folder: str, pattern: str) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in (REPOSITORY / folder).rglob(pattern))
    return {name for text in texts for name in VARIABLE.findall(text)}


def settings_table() -> list[str]:
    readme = (REPOSITORY / "README.md").read_text()
    section = readme.partition("\n## Settings\n")[2].partition("\n### ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return [name for cell in cells for name in VARIABLE.findall(cell)]


def test_every_variable_has_one_row() -> None:
    assert len(settings_table()) == len({*settings_table()})


def test_every_variable_of_the_settings_is_explained() -> None:
    explained = {*settings_table()} | variables("docs", "*.md")
    assert variables("mail_assets/settings", "*.py") <= explained


@pytest.mark.parametrize("name", sorted({*settings_table()}))
def test_every_variable_that_is_explained_exists(name: str) -> None:
    assert name in variables("mail_assets", "*.py")
