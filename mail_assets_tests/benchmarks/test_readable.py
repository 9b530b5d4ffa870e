"""The reader of texts finds known addresses in any disguise."""

import pytest

from benchmarks.harvest import Reader

READER = Reader(["ann.bo@mail.example.org", "dot@example.org"])


@pytest.mark.parametrize("text", [
    "ann.bo@mail.example.org", "Ann.Bo at mail dot example dot org",
    "ann bo << mail . example . org", "ann.bo @\n> mail.example.org", "ann.bo|at|mail.example.org",
    "ann.bo%2540mail.example.org", r"ann.bo\u0040mail.example.org",
    "ann\u2022bo \u2022 mail.example.org",
])  # fmt: skip
def test_it_reads_an_address_in_any_disguise(text: str) -> None:
    assert [*READER.find(f"Write to {text}, or not.")] == [text]


@pytest.mark.parametrize("text", [
    "ann.bo.mail.example.org", "/ann/bo/mail.example.org", "ann.bo@example.org",
    "ann.bo went to the harbor of mail.example.org", "annbo@mail.example.org", "",
])  # fmt: skip
def test_it_reads_no_address_in_hosts_paths_and_words_far_apart(text: str) -> None:
    assert [*READER.find(text)] == []
