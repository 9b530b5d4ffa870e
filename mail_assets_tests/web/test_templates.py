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
def test_templates_have_no_scripts_and_no_unsafe_filters(path: Path, forbidden: str) -> None:
    assert not re.search(forbidden, path.read_text(), re.IGNORECASE)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template_attributes_are_quoted(path: Path) -> None:
    assert not re.search(r"=\{\{", path.read_text())


def test_stylesheet_loads_nothing() -> None:
    style = (STATIC / "style.css").read_text()
    assert not re.search(r"url\(|@import|expression", style)


def test_every_class_in_templates_has_a_style() -> None:
    style = (STATIC / "style.css").read_text()
    used = {
        name
        for path in TEMPLATES
        for value in re.findall(r'class="([^"{]*)"', path.read_text())
        for name in value.split()
    }
    assert used - {*re.findall(r"\.([a-z][a-z0-9-]*)", style)} == set()
