"""What makes summaries, as the environment says."""

import pytest

from mail_assets.settings.settings import CHAT, EXTRACTIVE, SUMMARY_TOKENS, load_settings
from mail_assets.settings.values import SettingsError

CHAT_MODEL = {"MAIL_CHAT_URL": "http://localhost:1/v1", "MAIL_CHAT_MODEL": "made-mini"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, (EXTRACTIVE, SUMMARY_TOKENS)),
        (CHAT_MODEL, (EXTRACTIVE, SUMMARY_TOKENS)),
        ({**CHAT_MODEL, "MAIL_SUMMARIES": "chat"}, (CHAT, SUMMARY_TOKENS)),
        ({"MAIL_SUMMARY_TOKENS": "5000"}, (EXTRACTIVE, 5_000)),
    ],
    ids=["nothing", "a-model-for-answers", "chat", "tokens"],
)
def test_summaries_need_no_model_unless_one_is_asked_for(
    variables: dict[str, str], wanted: tuple[str, int]
) -> None:
    assert load_settings(variables).summaries == wanted


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MAIL_SUMMARIES": "chat"}, "needs MAIL_CHAT_URL and MAIL_CHAT_MODEL"),
        ({"MAIL_SUMMARIES": "best"}, "extractive"),
        ({"MAIL_SUMMARY_TOKENS": "many"}, "MAIL_SUMMARY_TOKENS"),
    ],
)
def test_a_wrong_value_is_named(variables: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings(variables)
