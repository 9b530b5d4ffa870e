"""Records of `thread_summaries` in Dagster: figures, and skipped threads."""

from dataclasses import replace

import pytest

from mail_assets.defs.partitions import asset_key
from mail_assets.openai import ChatModel
from mail_assets.settings.settings import SummarySettings
from mail_assets.settings.variables import CHAT
from mail_assets.summaries.decisions import DECISIONS_VERSION
from mail_assets.summaries.extractive import ExtractiveMaker
from mail_assets.summaries.summary import SummaryError
from mail_assets_tests.defs.dagster_world import DagsterWorld
from mail_assets_tests.openai.fake_chat import MODEL, fake_chat
from mail_assets_tests.openai.fake_server import KEY, serving
from mail_assets_tests.world import APRIL, MARCH, mail

ASSET = "thread_summaries"
WHOLE = ("threads", ASSET)


@pytest.fixture
def world(world: DagsterWorld) -> DagsterWorld:
    """Two threads of two messages, not built yet."""
    question = "Why does the pump stop at high tide? I *looked* at the valve <twice>."
    answer = mail("b", "A fix is committed to the main branch.", references="<a@example.org>")
    other = mail("c"), mail("f", references="<c@example.org>")
    world.load(mail("a", question), answer, *other)
    return world


def test_summaries_record_figures(world: DagsterWorld) -> None:
    result = world.month(MARCH, select=WHOLE)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    [recorded] = world.recorded(result, ASSET).values()
    figures = {name: recorded[name] for name in ("summaries", "made", "left", "failed", "requests")}
    assert figures == {"summaries": 2, "made": 2, "left": 0, "failed": 0, "requests": 0}
    assert recorded["dagster/row_count"] == 2
    assert "note" not in recorded
    again = world.month(MARCH, select=WHOLE)
    assert world.version(again, ASSET) == world.version(result, ASSET)
    [recorded] = world.recorded(again, ASSET).values()
    assert (recorded["summaries"], recorded["made"]) == (2, 0)


def test_summaries_check_only_months_of_changed_threads(world: DagsterWorld) -> None:
    world.month(MARCH, select=WHOLE)
    thread = mail("e"), mail("g", references="<e@example.org>")
    world.load(mail("d", references="<c@example.org>"), *thread, month=APRIL)
    result = world.month(MARCH, select=WHOLE)
    [recorded] = world.recorded(result, ASSET).values()
    assert (recorded["changed"], recorded["made"], recorded["summaries"]) == (2, 2, 3)
    checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert checks["sentences_stand"].metadata["checked_months"].value == 2
    again = world.month(MARCH, select=WHOLE)
    for check in again.get_asset_check_evaluations():
        assert check.metadata["checked_months"].value == 0


def test_summaries_name_a_thread_that_was_left(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SummaryError("the reply cites nothing")

    with monkeypatch.context() as patch:
        patch.setattr(ExtractiveMaker, "summarize", refuse)
        result = world.month(MARCH, select=WHOLE)
    assert result.success, "threads are there without summaries"
    [recorded] = world.recorded(result, ASSET).values()
    assert recorded["note"] == "a@example.org: the reply cites nothing"
    assert (recorded["failed"], recorded["left"], recorded["summaries"]) == (2, 2, 0)
    checks = {one.check_name: one.passed for one in result.get_asset_check_evaluations()}
    assert not checks["summaries_current"]
    again = world.month(MARCH, select=WHOLE)
    assert all(check.passed for check in again.get_asset_check_evaluations())


def test_chat_model_is_asked_only_about_changed_threads(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = "question: The pump stops at high tide. [1]\nZoe agrees. [1]"
    with serving(fake_chat(reply)) as server:
        monkeypatch.setenv("MAIL_CHAT_KEY", KEY)
        chat = ChatModel(MODEL, server.url)
        summaries = SummarySettings(CHAT, 1_000_000)
        settings = replace(world.settings(), chat=chat, chat_key=KEY, summaries=summaries)
        monkeypatch.setattr(DagsterWorld, "settings", lambda _: settings)
        result = world.month(MARCH, select=WHOLE)
        [recorded] = world.recorded(result, ASSET).values()
        # for the other thread, no sentence of the model has support
        assert recorded["note"].startswith("c@example.org: the reply has no sentence")
        figures = ("made", "failed", "left", "requests", "prompt_tokens", "completion_tokens")
        assert [recorded[name] for name in figures] == [1, 1, 1, 2, 200, 40]
        assert recorded["unsupported"] == 3
        assert KEY not in repr(recorded)
        world.month(MARCH, select=WHOLE)
        assert len(server.seen) == 3, "what failed is asked for again, and nothing else"
    [(verbatim, maker)] = world.rows("thread_summaries", "verbatim, maker")
    assert (verbatim, maker) == (False, f"chat-2 decisions-{DECISIONS_VERSION} {MODEL} 6000")
    assert world.defs.resolve_asset_graph().get(asset_key(ASSET)).code_version == maker
    found = {one.check_name: one.passed for one in result.get_asset_check_evaluations()}
    assert (found["sentences_stand"], found["summaries_current"]) == (True, False)
