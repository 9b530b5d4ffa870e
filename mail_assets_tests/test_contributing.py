"""The walks through the code in CONTRIBUTING.md name existing files, each once."""

import re

import pytest

from mail_assets_tests.conftest import REPOSITORY

_STEP = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_FILE = re.compile(r"`([\w/]+\.py)`")


def walks() -> list[list[str]]:
    """Return the files of each numbered list, in order."""
    found: list[list[str]] = []
    for number, line in _STEP.findall((REPOSITORY / "CONTRIBUTING.md").read_text()):
        if number == "1":
            found.append([])
        found[-1] += _FILE.findall(line)
    return found


def test_there_are_four_walks() -> None:
    assert len(walks()) == 4


@pytest.mark.parametrize("walk", walks(), ids=lambda walk: walk[0])
def test_walk_names_at_most_nine_files_that_exist(walk: list[str]) -> None:
    assert len(walk) == len({*walk}) <= 9
    missing = [file for file in walk if not (REPOSITORY / "mail_assets" / file).is_file()]
    assert missing == []
