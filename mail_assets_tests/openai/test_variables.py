"""The variables of an endpoint: what is usable, and one line for what is not."""

import pytest

from mail_assets.openai.variables import VariableError, read_key, read_number, read_url


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("https://api.voyageai.com/v1", "https://api.voyageai.com/v1"),
        ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://gpu-box", "https://gpu-box"),
        ("", "https://api.openai.com/v1"),
    ],
)
def test_a_base_url_is_kept_without_its_last_slash(value: str, url: str) -> None:
    assert read_url({"X_URL": value}, "X_URL", "https://api.openai.com/v1") == url


@pytest.mark.parametrize(
    "value",
    [
        *("api.openai.com/v1", "ftp://host/v1", "https://", "https:///v1", "http://host:x/v1"),
        *("http://[::1/v1", "https://hö.example/v1", "https://host/v 1", "https://host/\nv1"),
        "http://host:99999/v1",
    ],
)
def test_what_is_no_base_url_is_refused(value: str) -> None:
    with pytest.raises(VariableError) as caught:
        read_url({"X_URL": value}, "X_URL")
    assert caught.value.args == (
        "X_URL",
        value,
        "must be a base URL such as https://api.openai.com/v1",
    )


@pytest.mark.parametrize(
    "value", ["https://u:s3cr3t@host/v1", "https://host/v1?key=s3cr3t", "https://host/v1#x"]
)
def test_a_url_holds_no_key_and_the_right_variable_is_named(value: str) -> None:
    with pytest.raises(VariableError, match="a key is X_KEY"):
        read_url({"X_URL": value}, "X_URL")


def test_a_key_may_be_empty_and_loses_the_line_end_of_its_file() -> None:
    assert read_key({}, "X_KEY") == ""
    assert read_key({"X_KEY": "sk-1\n"}, "X_KEY") == "sk-1"


@pytest.mark.parametrize("value", ["sk 1", "sk\n1", "schlüssel", "sk\x001"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(VariableError) as caught:
        read_key({"X_KEY": value}, "X_KEY")
    assert caught.value.args == ("X_KEY", "***", "must be one word of ASCII characters")


@pytest.mark.parametrize(("value", "number"), [("", 5), ("1", 1), ("9", 9), ("07", 7)])
def test_a_whole_number_is_read(value: str, number: int) -> None:
    assert read_number({"X": value}, "X", 5, 1, 9) == number


@pytest.mark.parametrize("value", ["0", "10", "-1", "1.5", "two", "٣", "9" * 5000, " 5"])
def test_what_is_no_such_number_is_refused(value: str) -> None:
    with pytest.raises(VariableError, match="must be a whole number from 1 to 9"):
        read_number({"X": value}, "X", 5, 1, 9)
