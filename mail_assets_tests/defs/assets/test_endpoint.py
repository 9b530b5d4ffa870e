"""The chain and a search with a model on a server."""

from collections.abc import Iterator

import pytest

from mail_assets.defs.resources import EncoderResource
from mail_assets.encoding.models import REMOTE_PRECISION, RemoteModel, compute_fingerprint
from mail_assets.search.language.request import Request
from mail_assets.search.open import SearchSettings, open_searcher
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.encoding.fake_openai import MODEL, fake_openai
from mail_assets_tests.openai.fake_server import KEY, FakeServer, serving
from mail_assets_tests.world import MARCH, mail


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv("MAIL_ENCODER_KEY", KEY)
    with serving(fake_openai()) as server:
        yield server


def test_month_is_encoded_by_the_server_and_found(world: DagsterWorld, server: FakeServer) -> None:
    name = RemoteModel(MODEL, server.url).name
    world.encoder_resource = EncoderResource(name=name, precision=REMOTE_PRECISION, cache="")
    world.archive(MARCH, mail("a"), mail("b", "A frozen worker."))
    result = world.month(MARCH)
    assert result.success
    [embeddings] = world.recorded(result, "embeddings").values()
    assert (embeddings["model"], embeddings["precision"]) == (name, REMOTE_PRECISION)
    assert embeddings["fingerprint"] == compute_fingerprint(name, REMOTE_PRECISION)
    counted = embeddings["endpoint_tokens"]
    assert counted == sum(len(x.split()) for seen in server.seen for x in seen.body["input"]) > 0
    [vectors] = world.recorded(result, "vectors").values()
    assert vectors["index"] == f"mail2-{MODEL}-{compute_fingerprint(name, REMOTE_PRECISION)}"
    assert vectors["written"] == 2
    assert all(check.passed for check in result.get_asset_check_evaluations())

    asked = len(server.seen)
    again = world.month(MARCH)
    [embeddings] = world.recorded(again, "embeddings").values()
    assert (embeddings["encoded"], embeddings["endpoint_tokens"]) == (0, 0)
    assert len(server.seen) == asked

    settings = world.settings()
    searched = SearchSettings(
        settings.database,
        world.bucket,
        settings.words,
        name,
        REMOTE_PRECISION,
        world.home,
        settings.languages,
    )
    with open_searcher(searched) as searcher:
        hits = searcher.search(Request("about b\nA frozen worker.", mode="semantic")).hits
    assert (hits[0].message_id, hits[0].score) == ("b@example.org", 1.0)
