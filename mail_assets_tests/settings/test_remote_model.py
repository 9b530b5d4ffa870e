"""The variables of a model on a server."""

import pytest

from mail_assets.encoding.remote_encoder import RemoteModel
from mail_assets.openai.variables import VariableError
from mail_assets.settings.values import read_remote_model

LOCAL = RemoteModel("nomic-embed-text:v1.5", "http://127.0.0.1:11434/v1")
SECRET = "sk-s3cr3t"


def test_all_of_a_model_is_read_from_the_environment() -> None:
    found = read_remote_model(
        {
            "MAIL_ENCODER": "openai:voyage-3.5",
            "MAIL_ENCODER_URL": "https://api.voyageai.com/v1/",
            "MAIL_ENCODER_KEY": SECRET,
            "MAIL_ENCODER_DIMENSION": "1024",
            "MAIL_ENCODER_MAX_TOKENS": "600",
            "MAIL_ENCODER_QUERY_PREFIX": "query: ",
            "MAIL_ENCODER_DOCUMENT_PREFIX": "passage: ",
            "MAIL_ENCODER_BATCH": "128",
            "MAIL_ENCODER_IN_FLIGHT": "8",
        }
    )
    url = "https://api.voyageai.com/v1"
    assert found == RemoteModel("voyage-3.5", url, 1024, 600, "query: ", "passage: ", 128, 8)
    assert SECRET not in found.name


def test_the_name_of_the_model_is_enough_where_no_key_is_needed() -> None:
    env = {"MAIL_ENCODER": f"openai:{LOCAL.model}", "MAIL_ENCODER_URL": LOCAL.url}
    assert read_remote_model(env) == LOCAL


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MAIL_ENCODER", "openai:", "must be openai:MODEL"),
        ("MAIL_ENCODER", "openai:two words", "must be openai:MODEL"),
        ("MAIL_ENCODER", "openai:m@host", "must be openai:MODEL"),
        ("MAIL_ENCODER_KEY", "", "https://api.openai.com/v1 wants a key"),
        ("MAIL_ENCODER_URL", "localhost:11434", "must be a base URL"),
        ("MAIL_ENCODER_DIMENSION", "4097", "whole number from 0 to 4096"),
        ("MAIL_ENCODER_MAX_TOKENS", "193", "whole number from 194 to 8192"),
        ("MAIL_ENCODER_QUERY_PREFIX", "x" * 401, "at most 400 bytes"),
        ("MAIL_ENCODER_DOCUMENT_PREFIX", "\udcff", "must be text"),
        ("MAIL_ENCODER_BATCH", "0", "from 1 to 2048"),
        ("MAIL_ENCODER_IN_FLIGHT", "65", "from 1 to 64"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, says: str) -> None:
    env = {"MAIL_ENCODER": "openai:text-embedding-3-small", "MAIL_ENCODER_KEY": SECRET}
    with pytest.raises(VariableError) as caught:
        read_remote_model({**env, name: value})
    assert caught.value.args[:2] == (name, value)
    assert says in caught.value.args[2]


def test_a_long_prefix_leaves_room_for_text() -> None:
    env = {"MAIL_ENCODER": "openai:m", "MAIL_ENCODER_KEY": SECRET}
    env["MAIL_ENCODER_DOCUMENT_PREFIX"] = "p" * 330
    with pytest.raises(VariableError, match="from 524 to 8192"):
        read_remote_model(env)
