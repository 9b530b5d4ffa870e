"""The text of a query taken apart into words and names."""

import pytest

from mail_assets.search.query import take_apart


@pytest.mark.parametrize(
    ("query", "identifiers", "parts"),
    [
        ("harbor_lease_renew", ["harbor_lease_renew"], ["harbor", "lease", "renew"]),
        ("access/heap/heapam.c", ["access/heap/heapam.c", "heapam.c"], ["heapam"]),
        ("40P01 in pg_class", ["40p01", "pg_class"], ["class"]),
        ("plain words", [], []),
    ],
)
def test_an_identifier_is_the_name_as_written_and_the_file_of_a_path(
    query: str, identifiers: list[str], parts: list[str]
) -> None:
    words = take_apart(query)
    assert (words.identifiers, words.identifier_parts) == (identifiers, parts)
