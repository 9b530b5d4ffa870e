"""How assistants reach the tools: over HTTP, by each version of the protocol, or standard input."""

import sys

import httpx
import pytest
from mcp import StdioServerParameters

from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.web.assistants import ask
from mail_assets_tests.web.conftest import BASE_URL


@pytest.mark.parametrize(
    ("method", "protocol", "asked", "status"),
    [
        ("GET", "2025-06-18", None, 405),
        ("GET", "2026-07-28", None, 405),
        ("DELETE", "2025-06-18", None, 405),
        ("POST", "2025-06-18", "subscriptions/listen", 200),
        ("POST", "2026-07-28", "subscriptions/listen", 404),
    ],
)
def test_mcp_opens_no_endless_stream(
    public: httpx.Client, method: str, protocol: str, asked: str | None, status: int
) -> None:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": protocol,
        "mcp-method": asked or "",
    }
    meta = {
        "io.modelcontextprotocol/protocolVersion": protocol,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": asked, "params": params} if asked else None
    # only begun to be read: a stream of events has no end
    with public.stream(method, "/mcp", headers=headers, json=body) as response:
        assert response.status_code == status
        assert response.headers["content-type"] == "application/json"
        assert response.headers.get("allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_clients_of_each_protocol_get_an_answer(public: httpx.Client, mode: str) -> None:
    assert "harbor-dev: 58 messages" in ask(f"{public.base_url}/mcp", "list_lists", mode=mode)


def test_foreign_host_and_origin_are_refused(public: httpx.Client) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        response = public.post("/mcp", json={}, headers=headers)
        assert response.status_code in (403, 421)


@pytest.mark.parametrize("origin", ["http://localhost", "http://127.0.0.1:6274", BASE_URL])
def test_local_and_own_origins_are_allowed(public: httpx.Client, origin: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"origin": origin, "accept": "application/json, text/event-stream"}
    assert public.post("/mcp", json=body, headers=headers).status_code == 200


@pytest.mark.slow
def test_mcp_command_serves_standard_input(corpus: Corpus) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mail_assets.cli", "mcp"], env=corpus.environ
    )
    assert "harbor-dev: 58 messages" in ask(server, "list_lists")
    assert "no message has the id" in ask(server, "get_message", message_id="x@example.org")
