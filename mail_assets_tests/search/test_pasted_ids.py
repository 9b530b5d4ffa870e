"""Message-IDs are known however they are pasted."""

import pytest

from mail_assets.search.language.syntax import MAX_IDS, find_pasted_ids

#: What mail programs and RFC 5322, section 3.6.4, make of an id.
IDS = [
    "20240304090533.GE9223@solheim.example.org",
    "CAH2-Wz=x+y_z%5B1%5D@mail.example.com",
    "a/b/c@x.org",
    "a@b@c.org",
    "Pine.LNX.4.44.0203041234560.1-100000@host",
    "1234.5678@[192.0.2.1]",
    "x@[IPv6:2001:db8::1]",
    "-dash@x.org",
    "$abc!def#ghi&jkl'mno@x.org",
    "=?x{y}~z|^`@x.org",
    "<a@b>"[1:-1],
    "ü@bücher.example",
    "a..b@x",
]


@pytest.mark.parametrize("wanted", IDS)
@pytest.mark.parametrize("form", ["{}", "<{}>", " <{}> ", "mid:{}", "id:<{}>", "Message-ID: <{}>"])
def test_an_id_is_known_bare_in_brackets_and_behind_its_name(wanted: str, form: str) -> None:
    assert find_pasted_ids(form.format(wanted))[0] == wanted


LINKS = [
    "https://lists.example.org/harbor-users/{}/",
    "https://lists.example.org/harbor-users/{}",
    "https://lists.example.org/r/{}/T/#u",
    "https://lists.example.org/r/{}/t.mbox.gz",
    "https://lists.example.org/r/{}/raw",
    "https://www.example.org/message-id/flat/{}",
    "http://mid.example.org/%3C{}%3E",
    "https://marc.example.org/?i={}",
    "https://lists.example.org/list@lists.example.org/message/{}/",
]


@pytest.mark.parametrize("link", LINKS)
def test_an_id_is_known_in_a_link(link: str) -> None:
    assert find_pasted_ids(link.format("2024.GE9223@x.org"))[0] == "2024.GE9223@x.org"
    assert find_pasted_ids(link.format("2024%2FGE%2b9@x.org"))[0] == "2024/GE+9@x.org"
    assert find_pasted_ids(link.format("2024.GE9223%40x.org"))[0] == "2024.GE9223@x.org"
    assert "a/b@x.org" in find_pasted_ids(link.format("a/b@x.org"))


@pytest.mark.parametrize(
    "text", ["", "@", "@@", "who is tom@x.org", "harbor", "a@", "https://x.org/a/b", "<>", "mid:"]
)
def test_what_has_no_id_is_none(text: str) -> None:
    assert not [one for one in find_pasted_ids(text) if one != "a@"]


def test_few_ids_are_looked_for_whatever_the_link() -> None:
    assert len(find_pasted_ids("https://x.org/" + "a@b/" * 500)) <= MAX_IDS
