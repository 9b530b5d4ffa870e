"""A whole reply of a chat model."""

from mail_assets.openai.chat import ChatMessage, ChatModel, ask_model
from mail_assets.openai.client import Client, Server
from mail_assets_tests.openai.fake_chat import MODEL, fake_chat
from mail_assets_tests.openai.fake_server import KEY, serving

ASKED = [ChatMessage("system", "be brief"), ChatMessage("user", "who?")]


def test_half_a_character_in_a_reply_is_replaced() -> None:
    with (
        serving(fake_chat("A duck \ud83e", " [1]")) as server,
        Client(Server("MAIL_CHAT", server.url, KEY)) as client,
    ):
        assert ask_model(client, ChatModel(MODEL, server.url), ASKED).text == "A duck \ufffd [1]"
