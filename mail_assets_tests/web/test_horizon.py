"""How far back was looked for what no index knows is said on every surface."""

import httpx
import pytest

from mail_assets.search import filters
from mail_assets.web.mcp_text import describe_hits

#: No index knows what has no such subject.
QUERY = "/search{}?q=-subject%3Azzz"


def test_page_names_the_first_day_of_a_limited_search(
    public: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert public.get(QUERY.format(".json")).json()["looked_back_to"] is None
    monkeypatch.setattr(filters, "MAX_WALKED", 3)
    found = public.get(QUERY.format(".json")).json()
    day = found["looked_back_to"]
    assert day > "2024-03"
    page = public.get(QUERY.format("")).text
    assert f"Only messages from {day} on were looked at" in page
    assert f"<code>before:{day}</code>" in page


@pytest.mark.parametrize("short", [True, False])
def test_tool_names_the_first_day_if_hits_are_short(
    public: httpx.Client, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    monkeypatch.setattr(filters, "MAX_WALKED", 3)
    found = public.get(QUERY.format(".json")).json() | {"short": short}
    told = describe_hits(found, 1_000)
    assert ("were looked at: for others add before:" in told) is short
    assert "before:" in describe_hits(found | {"hits": []}, 1_000)
