"""Searches are counted without their words; counting never delays or fails a search."""

import threading
from collections import Counter
from dataclasses import replace

import psycopg
import pytest

from mail_assets.search.language.request import Request, RequestError
from mail_assets.tables.search_audit import SearchKind
from mail_assets.web import audit
from mail_assets.web.audit import Counts, SearchAudit
from mail_assets.web.responses import ServingError
from mail_assets_tests.waits import LONG
from mail_assets_tests.web.conftest import fill, open_service, serving
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.world import HARBOR, PIER, World, mail

NEVER = 3600.0


class Store:
    """A store of counts, which can fail like a missing database."""

    def __init__(self) -> None:
        self.kept: Counter[SearchKind] = Counter()
        self.fails = False
        self.tried = 0

    def __call__(self, counts: Counts) -> None:
        self.tried += 1
        if self.fails:
            raise psycopg.OperationalError("gone")
        self.kept.update(counts)


def count(made: SearchAudit, query: str = "ballast", hits: int = 3) -> None:
    with made.watch("page") as watched:
        watched.request = Request(query)
        watched.hits = hits


def test_audit_counts_field_names_and_no_values() -> None:
    store = Store()
    made = SearchAudit(lambda: (HARBOR, PIER), store, NEVER)
    count(made, f"from:ann subject:secret -list:hidden list:{HARBOR} has:patch words", 7)
    made.close()
    [(kind, searches)] = store.kept.items()
    assert searches == 1
    assert kind.fields == ("from", "kind", "list", "subject")
    assert kind.lists == (HARBOR,)
    assert (kind.surface, kind.mode, kind.hits, kind.status) == ("page", "hybrid", 10, 200)
    assert (kind.hour.minute, kind.hour.second, kind.hour.microsecond) == (0, 0, 0)
    assert not {"ann", "secret", "hidden", "words"} & {*repr(kind).replace("'", " ").split()}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RequestError("wrong"), 400),
        (ServingError(503, "overloaded", "later"), 503),
        (psycopg.OperationalError("gone"), 503),
        (ZeroDivisionError(), 500),
    ],
)
def test_failed_search_is_counted_with_its_status(error: Exception, status: int) -> None:
    store = Store()
    made = SearchAudit(tuple, store, NEVER)
    with pytest.raises(type(error)), made.watch("api"):
        raise error
    made.close()
    assert [(kind.status, kind.mode, kind.hits) for kind in store.kept] == [(status, "", 0)]


def test_counts_are_kept_if_they_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    made = SearchAudit(tuple, store, NEVER)
    store.fails = True
    for _ in range(3):
        count(made)
        made.write_counts()
    assert (store.tried, store.kept) == (3, {})
    assert len(caplog.records) == 1, "logged once"
    store.fails = False
    count(made)
    made.close()
    assert sum(store.kept.values()) == 4


def test_kept_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_KINDS", 2)
    store = Store()
    made = SearchAudit(tuple, store, NEVER)
    for _ in range(2):
        for field in ("from", "to", "file", "subject"):
            count(made, f"{field}:x")
    made.close()
    assert len(store.kept) == 2


def test_search_does_not_wait_for_the_writer() -> None:
    writing, go_on = threading.Event(), threading.Event()

    def write(_: Counts) -> None:
        writing.set()
        assert go_on.wait(LONG)

    made = SearchAudit(tuple, write, 0.001)
    try:
        count(made)
        assert writing.wait(LONG)
        count(made)  # would hang here
    finally:
        go_on.set()
        made.close()


def test_each_surface_is_counted_separately(world: World) -> None:
    fill(world, mail("a", "whale"))
    with serving(world.settings()) as client:
        page = {"q": "whale from:ann", "mode": "fulltext", "list": HARBOR}
        assert client.get("/search", params=page).status_code == 200
        assert client.get("/search.json", params={**page, "q": "shark from:ann"}).status_code == 200
        assert client.get("/search.json", params={"q": "whale", "list": "nowhere"}).is_error
        assert client.get("/search.json", params={"q": "has:nothing"}).is_error
        assert client.get("/search.atom", params=page).status_code == 200
        assert client.get("/search.mbox.gz", params=page).status_code == 200
        assert ask_tool(client, "semantic_search", query="whale mode:fulltext").is_success
    columns = "surface, mode, fields, lists, hits, status, searches"
    assert world.rows("served_searches", columns) == [
        ("api", "", [], [], 0, 400, 1),
        ("api", "fulltext", ["from", "list"], [HARBOR], 0, 200, 1),
        ("api", "hybrid", ["list"], [], 0, 400, 1),
        ("export", "fulltext", ["from", "list"], [HARBOR], 1, 200, 1),
        ("feed", "fulltext", ["from", "list"], [HARBOR], 1, 200, 1),
        ("mcp", "fulltext", [], [], 1, 200, 1),
        ("page", "fulltext", ["from", "list"], [HARBOR], 1, 200, 1),
    ]


def test_serving_needs_only_to_read_and_to_add_counts(world: World) -> None:
    world.load(mail("a", "whale"), last="words")
    with world.connect() as connection:
        for line in (
            "create role mail_web",
            "grant select on all tables in schema public to mail_web",
            "grant insert on served_searches to mail_web",
        ):
            connection.execute(line)
    settings = replace(world.settings(), pg_dsn=f"{world.dsn}&options=-c%20role%3Dmail_web")
    try:
        with open_service(settings) as service:
            with service.audit.watch("page") as watched:
                watched.request = Request("whale", mode="fulltext")
                assert len(service.search(watched.request).hits) == 1
            with (
                settings.database.connect("test") as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute("delete from messages")
    finally:
        with world.connect() as connection:
            connection.execute("drop owned by mail_web")
            connection.execute("drop role mail_web")
    assert world.rows("served_searches", "surface, hits, searches") == [("page", 0, 1)]
