"""Modules that commands import: no command loads what it does not need."""

import json
import subprocess
import sys

import pytest

from mail_assets_tests.cli.conftest import inherited_environment
from mail_assets_tests.sample_corpus import ROOT, Corpus

_PARSER = "mail_assets.mail.message.body"
#: Modules whose import takes more than 20 ms of processor time.
HEAVY = {
    *("boto3", "dagster", "httpx", "jinja2", "lancedb", "mcp", "numpy", "onnx", "onnxruntime"),
    *("pandas", "psycopg", "pyarrow", "pydantic", "requests", "sqlalchemy", "starlette"),
    *("tokenizers", "torch", "uvicorn", _PARSER),
}
_PROGRAM = """\
import json, sys
from mail_assets.cli import main
try:
    main(json.loads(sys.argv[1]), prog_name="mail-assets")
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
_DATABASE = {"psycopg"}
_WORDS = {*_DATABASE, "lancedb", "numpy", "pandas", "pyarrow", "pydantic", "tokenizers"}


def find_heavy(command: list[str], environ: dict[str, str], answer: str = "") -> set[str]:
    """Run a command; return the heavy modules that it has imported."""
    program = [sys.executable, "-c", _PROGRAM, json.dumps(command)]
    environ = inherited_environment() | environ
    done = subprocess.run(
        program, env=environ, input=answer, capture_output=True, text=True, check=True
    )
    return HEAVY & {*json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize(("command", "allowed"), [
    (["--help"], set()),
    (["search", "--help"], set()),
    (["backfill", "--help"], set()),
    (["completion", "bash"], set()),
    (["status"], _DATABASE),
    (["show", ROOT], {*_DATABASE, _PARSER}),
    (["list", "harbor-dev"], _DATABASE),
    (["thread", ROOT], {*_DATABASE, "tokenizers"}),
    (["search", "lease", "--mode", "fulltext"], _WORDS),
    (["search", "lease"], {*_WORDS, "onnxruntime"}),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_command_imports_what_it_needs(
    corpus: Corpus, command: list[str], allowed: set[str]
) -> None:
    assert find_heavy(command, corpus.environ) <= allowed


def test_definitions_wait_for_what_only_steps_need() -> None:
    program = """\
import sys
import mail_assets.definitions
assert not {"lancedb", "onnxruntime", "pandas"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_clients_of_servers_wait_until_they_are_asked_for() -> None:
    program = """\
import sys
import mail_assets.lance, lancedb
client = "lance_namespace_urllib3_client"
assert f"{client}.models" in sys.modules and f"{client}.api" not in sys.modules
assert sys.modules[client].ApiClient.__module__ == f"{client}.api_client"
assert f"{client}.api" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_greeting_of_assistants_imports_nothing_heavy(corpus: Corpus) -> None:
    client = {"name": "test", "version": "1"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
    ]
    text = "".join(f"{json.dumps(one)}\n" for one in messages)
    assert find_heavy(["mcp"], corpus.environ, text) <= _DATABASE  # it checks MAIL_PG_DSN
