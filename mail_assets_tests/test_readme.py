"""The README and the docs name existing commands and variables."""

import re

from mail_assets.cli import main
from mail_assets.settings.variables import TABLE
from mail_assets_tests.conftest import REPOSITORY

#: A whole name; "MAIL_CHAT_" is only a prefix.
VARIABLE = re.compile(r"`((?:MAIL|DAGSTER)_[A-Z_]*[A-Z])`")
#: Read by the files of docs/deployment.md, not by the package.
OF_COMPOSE = {
    *("MAIL_WORKERS", "MAIL_LISTS_FILE", "MAIL_ARCHIVES_FOLDER", "MAIL_SECRETS_FOLDER"),
    *("MAIL_IMAGE", "MAIL_UI_PORT", "MAIL_WEB_PORT"),
}


def test_variables_in_the_docs_exist() -> None:
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    named = {name for page in pages for name in VARIABLE.findall(page.read_text(encoding="utf-8"))}
    exist = {row.name for section in TABLE for row in section.rows}
    assert named - exist == OF_COMPOSE


def test_readme_names_every_command() -> None:
    table = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("| command |")[2]
    rows = re.findall(r"^\| (`[^|]*`) \|", table.partition("\n\n")[0], re.MULTILINE)
    named = {words.split()[0] for row in rows for words in re.findall("`([^`]+)`", row)}
    assert named == {*main.list_commands(None)}  # type: ignore[arg-type]
