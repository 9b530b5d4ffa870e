"""What pages show beside their documents."""

import pytest

from mail_assets.web.pages import choose_pages


@pytest.mark.parametrize(
    ("count", "here", "linked"),
    [
        (1, 0, [0]),
        (3, 1, [0, 1, 2]),
        (100, 0, [0, 1, 2, 3, 99]),
        (100, 50, [0, 47, 48, 49, 50, 51, 52, 53, 99]),
        (100, 99, [0, 96, 97, 98, 99]),
    ],
)
def test_a_page_links_its_neighbours_and_both_ends(
    count: int, here: int, linked: list[int]
) -> None:
    pages = [f"/thread/{number}" for number in range(count)]
    assert choose_pages({"pages": pages, "url": pages[here]}) == linked
