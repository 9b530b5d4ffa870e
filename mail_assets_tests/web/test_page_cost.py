"""What a page costs does not depend on how large a thread is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from mail_assets.web.documents import POST_CHARACTERS, POSTS, Documents
from mail_assets.web.privacy import Publication
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.world import World, mail

T = TypeVar("T")

#: Messages of the large thread, and characters of its longest.
MANY, LONG = 2 * POSTS + 20, 3 * POST_CHARACTERS


class TracedService(SearchService):
    """Counts the round trips of reads: the server says once in each that it is ready."""

    trace_file: Path
    trips = 0

    def read(
        self, function: Callable[..., T], *args: Any, **kwargs: Any
    ) -> T:  # what is traced takes whatever the function takes
        def traced(connection: psycopg.Connection) -> T:
            with self.trace_file.open("w+b") as trace:
                connection.pgconn.trace(trace.fileno())
                try:
                    return function(connection, *args, **kwargs)
                finally:
                    connection.pgconn.untrace()
                    trace.seek(0)
                    self.trips += sum(b"ReadyForQuery" in line for line in trace)

        return super().read(traced)


@pytest.fixture
def service(world: World, tmp_path: Path) -> Iterator[TracedService]:
    """A thread of two messages, and one of many whose last is long."""
    large = [
        mail(f"b{n}", references=f"<b{n // 2}@example.org>" if n else "", body=f"Number {n}.")
        for n in range(MANY)
    ]
    longest = mail("long", body="A line of text.\n" * (LONG // 16), references="<b0@example.org>")
    small = [mail("a0"), mail("a1", references="<a0@example.org>")]
    world.archive("2024-03", *small, *large, longest)
    world.chain(last="messages")
    world.threads()
    world.summaries()
    service = TracedService(ServiceOptions(world.settings().search, world.forget_key, "", 1))
    service.trace_file = tmp_path / "trace"
    yield service
    service.close()


@pytest.mark.parametrize("page", ["thread", "message"])
def test_a_page_takes_as_many_round_trips_whatever_the_thread_has(
    service: TracedService, page: str
) -> None:
    make = getattr(Documents(service, Publication()), page)
    trips = []
    for id in ("a1@example.org", f"b{MANY - 1}@example.org"):
        service.trips = 0
        make(id)
        trips.append(service.trips)
    assert trips[0] == trips[1] <= 6


def test_pages_of_a_thread_are_bounded_and_hold_each_message_once(service: TracedService) -> None:
    documents = Documents(service, Publication())
    page: dict[str, Any] | None = documents.thread("b0@example.org")
    seen: list[str] = []
    while page:
        assert len(page["posts"]) <= POSTS
        assert all(len(post["body_text"]) <= POST_CHARACTERS for post in page["posts"])
        seen += [post["message_id"] for post in page["posts"]]
        page = documents.thread(page["next"].removeprefix("/thread/")) if page["next"] else None
    assert sorted(seen) == sorted({*seen})
    assert len(seen) == MANY + 1


@pytest.mark.parametrize("id", ["b0", f"b{MANY - 1}", "long"])
def test_the_page_of_a_message_is_where_its_id_leads(service: TracedService, id: str) -> None:
    page = Documents(service, Publication()).thread(f"{id}@example.org")
    assert f"{id}@example.org" in [post["message_id"] for post in page["posts"]]
    assert page["messages"] == MANY + 1
    assert page["url"] in page["pages"]
    assert len(page["pages"]) == -(-(MANY + 1) // POSTS)
