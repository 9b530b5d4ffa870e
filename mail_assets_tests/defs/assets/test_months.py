"""The records of months in Dagster's event log: no mail, and links to the pages that show it."""

from dataclasses import replace

import pytest

from mail_assets.defs.definitions import build_defs
from mail_assets_tests.defs.dagster_world import CHAIN, DagsterWorld
from mail_assets_tests.world import APRIL, HARBOR, MARCH, mail


def test_event_log_holds_no_mail(world: DagsterWorld) -> None:
    body = "Why does the Tuesday pump stop at high tide?"
    world.archive(MARCH, mail("a", body, subject="A leaking hull", sender="eve@example.net"))
    for select in (CHAIN, ("threads", "thread_summaries")):
        result = world.month(MARCH, select=select)
        assert result.success
        events = repr(world.instance.all_logs(result.run_id))
        assert f"{HARBOR} {MARCH}" in events or "threads" in events
        for trace in ("Tuesday", "leaking hull", "eve@example.net", "Ann"):
            assert trace not in events


def test_month_links_to_its_page_if_it_has_mail(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"))
    without = world.month(MARCH)
    settings = replace(world.settings(), web_url="https://archive.example.org")
    defs = build_defs(settings, encoder=world.encoder_resource)
    monkeypatch.setattr(DagsterWorld, "defs", defs)
    result = world.range(f"{HARBOR}|{MARCH}", f"{HARBOR}|{APRIL}")
    for asset in CHAIN:
        assert "page" not in world.recorded(without, asset)[f"{HARBOR}|{MARCH}"]
        march, april = (
            world.recorded(result, asset)[f"{HARBOR}|{month}"] for month in (MARCH, APRIL)
        )
        assert march["page"] == f"https://archive.example.org/lists/{HARBOR}/{MARCH}"
        assert "page" not in april
