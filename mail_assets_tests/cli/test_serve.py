"""`mail-assets serve`: the port that it takes before it prints its address."""

import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from mail_assets.cli.serve import _bind, _write_url
from mail_assets_tests.cli.conftest import invoke


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_taken_port_is_named_and_no_address_is_printed(bare: dict[str, str], host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        result = invoke("serve", "--host", host, "--port", port, env=bare)
    assert (result.exit_code, result.stdout) == (1, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"mail-assets: cannot serve at {host} port {port}: ")
    assert line.endswith("; give another --host or --port")


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "192.0.2.1"])
def test_host_of_another_machine_is_named(bare: dict[str, str], host: str) -> None:
    result = invoke("serve", "--host", host, "--port", "0", env=bare)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"mail-assets: cannot serve at {host} port 0: ")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", ""])
def test_bound_socket_can_be_listened_on(host: str) -> None:
    for one in _bind(host, 0):
        with one:
            one.listen()
            assert one.getsockname()[1] > 0


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000"), ("a", "http://a:8000")],
)
def test_address_of_serve_is_a_url(host: str, url: str) -> None:
    assert _write_url(host, 8000) == url
    assert urlsplit(url).port == 8000


def test_first_page_of_a_server_compiles_nothing() -> None:
    program = """
import re
from jinja2 import Environment
from mail_assets.mail.message.text_addresses import compile_patterns, mask_addresses
from mail_assets.web.pages import compile_templates, open_templates

def refuse(*given, **named):
    raise AssertionError("compiled late")

compile_patterns()
compile_templates()
re.compile = Environment.compile = refuse
mask_addresses("jo at example dot org, <jo@example.org>, mailto:jo@x.org")
open_templates().get_template("search.html")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
