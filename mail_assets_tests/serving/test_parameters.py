"""Parameters of a search: what they ask for, and how wrong ones are refused."""

import datetime as dt

import pytest

from mail_assets.search.language.request import RequestError
from mail_assets.web.requests import make_request, read_parameters
from mail_assets.web.responses import ServingError


def test_empty_parameters_are_as_if_not_given() -> None:
    assert read_parameters({"q": "x", "list": "", "after": " "}) == {"q": "x"}


def test_parameters_become_a_request() -> None:
    request = make_request(
        {"q": "x", "list": "pier", "after": "2024-02", "mode": "fulltext", "offset": "20"}
    )
    assert (request.query, request.lists, request.after) == ("x", ("pier",), dt.date(2024, 2, 1))
    assert (request.mode, request.offset, request.limit) == ("fulltext", 20, 10)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"q": "x", "foo": "1"}, "parameter 'foo' is unknown"),
        ({"q": "x", "limit": "ten"}, "limit 'ten'"),
        ({"q": "x", "limit": "9" * 5000}, "limit '9999"),
        ({"q": "x", "offset": "\u0663"}, "offset"),
        ({"q": "x", "limit": "0"}, "limit 0: allowed are 1 to 100"),
        ({"q": "x", "mode": "magic"}, "mode 'magic': allowed are"),
        ({"q": "x", "after": "soon"}, "soon"),
        ({"q": "a\0b"}, "NUL"),
        ({"q": "x" * 200_000}, "characters"),
    ],
)
def test_a_wrong_parameter_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises((RequestError, ServingError), match=said):
        make_request(read_parameters(given))
