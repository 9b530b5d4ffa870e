"""Records of months in Dagster's event log have no mail, but links to the pages with it."""

from dataclasses import replace

import pytest

from mail_assets.defs.assets.figures import quote_tags
from mail_assets.defs.partitions import asset_key
from mail_assets_tests.defs.dagster_world import CHAIN, OF_ALL_MAIL, DagsterWorld
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
    monkeypatch.setattr(DagsterWorld, "settings", lambda _: settings)
    result = world.range(f"{HARBOR}|{MARCH}", f"{HARBOR}|{APRIL}")
    for asset in OF_ALL_MAIL:
        assert "page" not in world.recorded(without, asset)[f"{HARBOR}|{MARCH}"]
        march, april = (
            world.recorded(result, asset)[f"{HARBOR}|{month}"] for month in (MARCH, APRIL)
        )
        assert march["page"] == f"https://archive.example.org/lists/{HARBOR}/{MARCH}"
        assert "page" not in april


def test_every_figure_of_a_month_is_explained(world: DagsterWorld) -> None:
    world.archive(MARCH, mail("a"))
    result = world.month(MARCH)
    specs = world.defs.resolve_asset_graph()
    for asset in CHAIN:
        [recorded] = world.recorded(result, asset).values()
        numbers = {
            name
            for name, value in recorded.items()
            if isinstance(value, int | float) and not name.startswith("dagster/")
        }
        rows = specs.get(asset_key(asset)).metadata["figures of a month"].records
        explained = {record.data["figure"] for record in rows}
        assert numbers <= explained, asset
        assert "seconds" in numbers, "what a step takes is plotted"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('To addresses, as "Name <address>".', 'To addresses, as "Name `<address>`".'),
        ("Written `<so>` already.", "Written `<so>` already."),
        ("a < b, and c > d", "a < b, and c > d"),
        ("<one> and <two words>", "`<one>` and `<two words>`"),
    ],
)
def test_description_keeps_words_in_angle_brackets(text: str, shown: str) -> None:
    assert quote_tags(text) == shown


def test_catalog_has_the_fields_of_a_vector(world: DagsterWorld) -> None:
    metadata = world.defs.resolve_asset_graph().get(asset_key("vectors")).metadata
    fields = [column.name for column in metadata["dagster/column_schema"].columns]
    assert fields == ["key", "vector", *world.index.spec.fields, *world.index.spec.non_filterable]
    assert all(column.description for column in metadata["dagster/column_schema"].columns)
    manifest = [column.name for column in metadata["manifest"].schema.columns]
    assert "digest" in manifest
