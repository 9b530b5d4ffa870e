"""No page, tool or command shows words, ids or names of mail on unpublished lists only."""

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
import pytest
from click.testing import CliRunner
from starlette.routing import Route

from mail_assets.cli import main
from mail_assets.settings.settings import Settings
from mail_assets.sql_functions import install_functions
from mail_assets.tables.lists import EVERY_LIST, record_lists, show_lists
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.web.conftest import open_app, serving
from mail_assets_tests.web.readings import ask_tool, read_response
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

#: Words that only closed mail has; queries use `quokka`, which occurs next to them.
SECRETS = ("zebrafish", "xanthippe", "hush-", "marmalade", "wombat.patch", "vault@")
TOOLS = ("get_message", "get_thread", "similar")


def closed(name: str, body: str = "", *, references: str = "", **more: str) -> bytes:
    """Return mail whose id, author, subject and text are secret words."""
    return mail(
        f"hush-{name}",
        body or "The quokka eats marmalade. We decided to keep the zebrafish for good.",
        subject=more.pop("subject", "zebrafish and quokka"),
        sender="vault@example.org",
        references=references,
        **more,
    ).replace(b"From: Ann", b"From: Xanthippe")


def fill_world(world: World) -> None:
    """Fill two lists; threads, a contested id and a message are in both. PIER will be closed."""
    world.load(
        mail("root", "Does the quokka swim in the harbor?", subject="quokka swims"),
        mail(
            "answer",
            "It does, and the quokka dives too.",
            subject="Re: quokka swims",
            references="<root@example.org> <hush-middle@example.org>",
        ),
        mail("cross", "The quokka was seen on both lists.", subject="quokka on both"),
        mail("late", "An open quokka answers.", references="<hush-0first@example.org>"),
        mail("claimed", "The open quokka claims this id.", subject="claimed quokka",
             from_line="From ann@example.org Wed Mar 20 09:00:00 2024"),
        last="chunks",
    )  # fmt: skip
    world.load(
        closed("0first"),
        closed("middle", references="<root@example.org> <ghost-of-hush-1@example.org>"),
        closed("tail", references="<root@example.org> <answer@example.org>"),
        mail("cross", "The quokka was seen on both lists.", subject="quokka on both"),
        closed("patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-zebrafish\n+marmalade\n"),
        closed("claim").replace(b"<hush-claim@", b"<claimed@"),
        closed(
            "file",
            "\n--b\nContent-Type: text/plain\n\nquokka marmalade\n--b\nContent-Type: text/plain\n"
            'Content-Disposition: attachment; filename="wombat.patch"\n\nzebrafish\n--b--\n',
            headers="Content-Type: multipart/mixed; boundary=b",
        ),
        list_name=PIER,
        last="chunks",
    )
    world.load(closed("april", date="Mon, 08 Apr 2024 09:00:00 +0000"), month=APRIL,
               list_name=PIER, last="chunks")  # fmt: skip
    world.threads()
    world.summaries()


def close(settings: Settings, name: str) -> Settings:
    """Return settings that close a list."""
    return replace(
        settings, lists={**settings.lists, name: replace(settings.lists[name], published=False)}
    )


def remove(settings: Settings, name: str) -> Settings:
    """Return settings without a list."""
    return replace(settings, lists={n: one for n, one in settings.lists.items() if n != name})


OPEN = ("root", "answer", "cross", "late", "claimed")
SHUT = ("hush-0first", "hush-middle", "hush-tail", "hush-patch", "hush-file", "hush-april")
GHOST = "ghost-of-hush-1@example.org"


def list_paths(open_ids: list[str], shut_ids: list[str], queries: list[str]) -> Iterator[str]:
    for id in (*open_ids, *shut_ids):
        yield from (
            f"/{door}/{quote(id)}"
            for door in (
                *("message", "message.json", "message.mbox", "thread", "thread.json"),
                *("thread.atom", "thread.mbox.gz", "similar", "similar.json"),
                *("series", "series.json"),
            )
        )
        yield f"/message/{quote(id)}/attachment/1"
    yield from ("/", "/lists", "/lists.json", "/openapi.json", "/robots.txt", "/answer")
    yield from (f"/{door}/0123456789" for door in ("commits", "commits.json"))
    yield from ("/sitemap.xml", "/opensearch.xml", "/answer?q=what+does+the+quokka+eat")
    for name in (HARBOR, PIER):
        yield from (f"/lists/{name}", f"/lists.json/{name}", f"/sitemap/{name}/{MARCH}")
        yield from (f"/lists/{name}/{MARCH}", f"/lists.json/{name}/{MARCH}")
        for kind in ("atom", "mbox.gz"):
            yield from (f"/lists.{kind}/{name}", f"/lists.{kind}/{name}/{MARCH}")
        yield from (f"/patches{kind}/{name}/applied" for kind in ("", ".json", ".atom"))
        yield from (f"/patches{kind}/{name}/open" for kind in ("", ".json"))
    for query in queries:
        yield from (
            f"/search{kind}?q={quote(query)}" for kind in ("", ".json", ".atom", ".mbox.gz")
        )
        yield from (f"/search{kind}?q={quote(query)}&group=message" for kind in ("", ".json"))


world = kept_world(fill_world)


@pytest.fixture
def shut(world: World) -> Settings:
    return close(world.settings(), PIER)


QUERIES = [
    *("quokka", '"the quokka"', "quokka sort:date", "quokka sort:oldest", "quokka is:reply"),
    *("quokka has:attachment", "quokka has:patch", "from:ann quokka", "month:2024-03 quokka"),
    *("quokka subject:quokka", "id:root@example.org", "thread:root@example.org quokka", "quo*"),
]


def test_no_surface_shows_mail_of_a_closed_list(shut: Settings) -> None:
    ids = [f"{name}@example.org" for name in OPEN]
    gone = [f"{name}@example.org" for name in SHUT]
    queries = [f"{one} mode:fulltext" for one in QUERIES]
    queries += [f"quokka mode:fulltext near:{id}" for id in (ids[0], ids[3], gone[1])]
    with serving(shut, addresses="shown") as client:
        for path in list_paths(ids, [*gone, GHOST], queries):
            response = client.get(path)
            said = read_response(response)
            for id in (*gone, GHOST):
                if id in path or quote(id) in path:
                    assert response.status_code in (400, 404, 410), path
                    said = said.replace(id, "").replace(quote(id), "")
            if PIER in path:
                assert response.status_code in (400, 404, 410), path
                said = said.replace(PIER, "")
            assert_silent(said, path)
        calls = [(tool, {"message_id": id}) for tool in TOOLS for id in (*ids, *gone)]
        calls += [("semantic_search", {"query": one}) for one in queries]
        calls += [("explain_search", {"query": one}) for one in queries]
        calls += [("answer", {"question": "what does the quokka eat"}), ("list_lists", {})]
        for tool, arguments in calls:
            said = read_response(ask_tool(client, tool, **arguments))
            for asked in " ".join(arguments.values()).replace("near:", "").split():
                said = said.replace(asked, "") if "hush-" in asked else said
            assert_silent(said, f"{tool} {arguments}")


#: The first parts of paths that lead to no mail.
OTHERS = {"health", "ready", "static", "favicon.ico", "mcp", "message-id", "{path:path}"}


def test_every_surface_is_tried(shut: Settings) -> None:
    with open_app(shut) as app:
        routes = {route.path.split("/")[1] for route in app.routes if isinstance(route, Route)}
    tried = {re.split("[/?]", path)[1] for path in list_paths(["x"], [], ["x"])}
    assert routes - OTHERS <= tried


def assert_silent(said: str, door: str) -> None:
    words = said.lower()
    told = [one for one in SECRETS if one in words]
    told += re.findall(r"\bpier\b", words)
    encoded = {base64.b64encode(one.encode()).decode() for one in SECRETS}
    assert not told, f"{door} tells {told}"
    assert not any(one in said for one in encoded), door


#: Path -> status of its answer when PIER is closed.
STATUS = {
    **{f"/{door}/hush-0first@example.org": 410 for door in ("message", "message.json", "thread")},
    **{f"/{door}/hush-0first@example.org": 410 for door in ("thread.json", "thread.atom")},
    "/similar.json/hush-0first@example.org": 410,
    "/message.mbox/hush-april@example.org": 410,
    "/thread.mbox.gz/hush-april@example.org": 410,
    "/message/hush-file@example.org/attachment/1": 410,
    "/lists/pier": 410,
    "/lists.json/pier": 410,
    "/lists/pier/2024-03": 410,
    "/lists/quay": 404,
    "/message/nobody@example.org": 404,
    "/message/cross@example.org?list=pier": 404,
    "/search?q=quokka+list%3Apier": 400,
    "/search.json?q=quokka&list=pier": 400,
    "/message/cross@example.org": 200,
    "/thread/answer@example.org": 200,
}


def test_closed_mail_is_gone_where_it_was(shut: Settings) -> None:
    with serving(shut) as client:
        assert {path: client.get(path).status_code for path in STATUS} == STATUS


def test_mail_that_was_never_published_is_not_found(world: World) -> None:
    with world.connect() as connection:
        connection.execute("update lists set published = false, was_published = false")
        settings = close(world.settings(), PIER)
        record_lists(connection, settings.languages)
    with serving(settings) as client:
        assert client.get("/message/hush-0first@example.org").status_code == 404
        assert client.get("/lists/pier").status_code == 404


@pytest.mark.parametrize("change", [close, remove])
def test_threads_look_as_if_closed_mail_did_not_exist(world: World, change: Any) -> None:
    with serving(change(world.settings(), PIER), addresses="shown") as client:
        thread = client.get("/thread.json/answer@example.org").json()
        assert [(one["message_id"], one["depth"], one["position"]) for one in thread["posts"]] == [
            ("root@example.org", 0, 0),
            ("answer@example.org", 1, 1),
        ]
        assert thread["posts"][1]["parent_message_id"] == "root@example.org"
        assert (thread["messages"], thread["positions"], thread["people"]) == (2, 2, 1)
        assert thread["lists"] == [HARBOR]
        assert thread["summary"] is None
        alone = client.get("/thread.json/late@example.org").json()
        assert (alone["thread_id"], alone["messages"]) == ("late@example.org", 1)
        late = client.get("/message.json/late@example.org").json()
        assert (late["thread_id"], late["parent_id"], late["depth"]) == (
            "late@example.org",
            None,
            0,
        )
        assert late["in_reply_to"] == []
        claimed = client.get("/message.json/claimed@example.org").json()
        assert (claimed["contested"], claimed["text"], claimed["other_texts"]) == (False, 1, [])
        month = client.get(f"/lists.json/{HARBOR}/{MARCH}").json()
        for post in month["posts"]:
            alone = client.get(f"/message.json/{post['message_id']}").json()
            assert (post["depth"], post["thread_id"]) == (alone["depth"], alone["thread_id"])
        cross = client.get("/message.json/cross@example.org").json()
        assert cross["places"] == [{"list": HARBOR, "month": MARCH}]
        assert [one["list"] for one in cross["in_lists"]] == [HARBOR]


class Sample(NamedTuple):
    """Texts of only the closed sample list, in lower case, and ids of the other lists."""

    gone: list[str]
    others: list[str]
    words: list[str]


@contextmanager
def closed_sample(corpus: Corpus, name: str) -> Iterator[tuple[Settings, Sample]]:
    """Yield the sample lists with one of them closed, and the texts that only that one has."""
    settings = corpus.settings
    with psycopg.connect(settings.pg_dsn, autocommit=True) as connection:
        show_lists(connection, EVERY_LIST)
        rows = connection.execute(
            "select message_id, subject_base, from_name, from_email, body_text, list from messages"
        ).fetchall()
    gone = {row[0] for row in rows} - {row[0] for row in rows if row[5] != name}
    others = [Path(one.source) for one in settings.lists.values() if one.name != name]
    files = (path.read_bytes() for folder in others for path in folder.iterdir())
    shown = "\n".join(" ".join(row[:5]) for row in rows if row[5] != name)
    shown = (shown + "\n".join(data.decode("utf-8", "replace") for data in files)).lower()
    words = {
        text.strip().lower()
        for row in rows
        if row[0] in gone
        for text in (*row[:4], *row[4].splitlines())
        if len(text.strip()) > 12 and text.strip().lower() not in shown
    }
    kept = sorted({row[0] for row in rows if row[5] != name})
    yield close(settings, name), Sample(sorted(gone), kept, sorted(words))


@pytest.mark.parametrize("name", ["harbor-dev", "harbor-users"])
def test_no_search_shows_a_closed_sample_list(corpus: Corpus, name: str) -> None:
    with closed_sample(corpus, name) as (settings, sample):
        assert len(sample.gone) > 3
        queries = [QUERY, f"{QUERY} mode:semantic", "lease mode:fulltext", "lease sort:date"]
        queries += [f"lease near:{sample.others[0]}"]
        doors = [
            path
            for path in list_paths(sample.others[:6], sample.gone[:4], queries)
            if path.startswith(("/search", "/similar", "/thread", "/answer"))
        ]
        with serving(settings, addresses="shown") as client:
            answers = {path: read_response(client.get(path)) for path in doors}
            answers[f"answer?q={QUERY}"] = read_response(client.get("/answer", params={"q": QUERY}))
            for id in sample.gone[:4]:
                answers[f"mcp {id}"] = read_response(ask_tool(client, "get_thread", message_id=id))
        for path, said in answers.items():
            own = [id for id in sample.gone if quote(id) in path or id in path]
            for id in own:
                said = said.replace(id, "").replace(quote(id), "")
            said = said.lower()
            told = [one for one in sample.words if one in said]
            assert not told, f"{path}: {told}"


def test_commands_say_that_a_list_is_closed(world: World) -> None:
    environ = world.environ(f'[{PIER}]\nsource = "{world.folder(PIER)}"\npublished = false\n')

    def run(*arguments: str) -> str:
        return CliRunner().invoke(main, arguments, env=environ).output

    assert "is stored in pier, not published" in run("show", "hush-april@example.org")
    assert "is stored in pier, not published" in run("thread", "hush-april@example.org")
    assert "is no patch" in run("series", "cross@example.org")
    assert "is not published" in run("search", "--mode", "fulltext", "quokka", "--list", PIER)
    for said in (
        run("search", "--mode", "fulltext", "quokka"),
        run("thread", "answer@example.org"),
        run("thread", "answer@example.org", "--json"),
        run("show", "cross@example.org"),
        run("show", "late@example.org"),
    ):
        assert "quokka" in said.lower()
        assert_silent(said, said)


def test_the_public_role_sees_no_closed_mail(world: World) -> None:
    settings = close(world.settings(), PIER)
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("create role closed_web nologin")
        try:
            install_functions(connection, settings.languages, vectors=False, public="closed_web")
            connection.execute("set role closed_web")
            connection.execute("set mail_assets.lists = '*'")
            rows: list[Any] = []
            for query in (
                "select * from mail_public.messages",
                "select * from mail_public.threads",
                "select * from mail_public.search_fulltext('quokka', 50)",
                "select * from mail_public.search_fulltext('marmalade', 50)",
            ):
                rows += connection.execute(query.encode()).fetchall()
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"there are: harbor\n"):
                connection.execute(
                    "select * from mail_public.search_fulltext('quokka', 5, '{pier}')"
                )
            assert len(rows) > 10
            assert_silent(str(rows), "SQL")
            connection.execute("reset role")
            record_lists(connection, world.settings().languages)
            connection.execute("set role closed_web")
            found = connection.execute("select distinct list from mail_public.messages").fetchall()
            assert sorted(found) == [(HARBOR,), (PIER,)]
        finally:
            connection.execute("reset role")
            connection.execute("drop owned by closed_web; drop role closed_web")


def test_a_list_is_closed_at_the_next_request(tmp_path: Path) -> None:
    from mail_assets.settings.lists import PublishedLists

    path = tmp_path / "lists.toml"
    text = '[harbor]\nsource = "a"\n[pier]\nsource = "b"\n'
    path.write_text(text)
    published = PublishedLists(path, {})
    assert [*published()] == [HARBOR, PIER]
    path.write_text(f"{text}published = false\n")
    assert [*published()] == [HARBOR]
    path.write_text("[harbor")
    assert [*published()] == [HARBOR]
    path.unlink()
    assert [*published()] == [HARBOR]
