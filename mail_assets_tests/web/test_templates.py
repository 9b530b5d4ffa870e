"""The templates: what stands in them is escaped, and nothing that the policy of pages forbids."""

import re
from pathlib import Path

import pytest

from mail_assets.web import pages
from mail_assets.web.app import STATIC

TEMPLATES = sorted(pages.TEMPLATES.iterdir())


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "forbidden",
    [
        r"\|\s*safe",
        r"autoescape\s+false",
        r"Markup",
        r"<script(?! src=\"/static/[a-z]+\.js\" defer></script>)",
        r"<style",
        r"\sstyle=",
        r"\son[a-z]+=",
        r"javascript:",
        r"<(img|iframe|object|embed|base)\b",
        r"(href|src|action)=\"https?:",
    ],
)
def test_no_template_holds_what_could_run_or_escape(path: Path, forbidden: str) -> None:
    assert not re.search(forbidden, path.read_text(), re.IGNORECASE)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_what_a_template_says_stands_in_quotes_where_it_is_an_attribute(path: Path) -> None:
    assert not re.search(r"=\{\{", path.read_text())


def test_styles_load_nothing() -> None:
    style = (STATIC / "style.css").read_text()
    assert not re.search(r"url\(|@import|expression", style)


def test_each_class_of_a_template_is_styled() -> None:
    style = (STATIC / "style.css").read_text()
    used = {
        name
        for path in TEMPLATES
        for value in re.findall(r'class="([^"{]*)"', path.read_text())
        for name in value.split()
    }
    assert used - {*re.findall(r"\.([a-z][a-z0-9-]*)", style)} == set()
