"""A list whose source is another one now: what the old one had says nothing of the new."""

import pytest

from mail_assets.month import ListMonth
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.unchanged_months import confirm_archive
from mail_assets_tests.sources.web import Reply, serve, template
from mail_assets_tests.world import World, mail

MONTH = ListMonth("hackers", "2024-03")
OPTIONS = FetchOptions("plain")
NEWER = (("Last-Modified", "Mon, 01 Apr 2024 00:00:00 GMT"),)
OLDER = (("Last-Modified", "Fri, 01 Mar 2024 00:00:00 GMT"),)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_older_file_at_another_url_replaces_the_kept_one(world: World) -> None:
    with serve() as server, world.workspace() as workspace:
        server.on("/wrong.202403", Reply(mail("a"), headers=NEWER))
        older = Reply(status=304), Reply(mail("b"), headers=OLDER)
        url = server.on("/right.202403", *older, *older, Reply(status=304))
        fetch_archive(workspace, MONTH, template(server, "/wrong.{yyyymm}"), OPTIONS)
        right = template(server, "/right.{yyyymm}")
        assert not confirm_archive(workspace, MONTH, right, OPTIONS)
        assert fetch_archive(workspace, MONTH, right, OPTIONS).changed
        assert world.rows("mbox_archives", "source") == [(url,)]
        [key] = world.store.keys("archives/")
        assert (world.home / "store" / key).read_bytes() == mail("b")
        asked = len(server.seen)
        assert confirm_archive(workspace, MONTH, right, OPTIONS)
        assert not fetch_archive(workspace, MONTH, right, OPTIONS).changed
        assert len(server.seen) == asked + 2, "once each: the version is that of this URL"


def test_same_file_at_another_url_is_kept_and_recorded(world: World) -> None:
    with serve() as server, world.workspace() as workspace:
        tag = (("ETag", '"1"'),)
        for path in ("/old.202403", "/new.202403"):
            server.on(path, Reply(mail("a"), headers=tag))
        fetch_archive(workspace, MONTH, template(server, "/old.{yyyymm}"), OPTIONS)
        files = world.file_times()
        new = template(server, "/new.{yyyymm}")
        assert confirm_archive(workspace, MONTH, new, OPTIONS)
        assert not fetch_archive(workspace, MONTH, new, OPTIONS).changed
        assert world.file_times() == files
        assert world.rows("mbox_archives", "source") == [(f"{server.base}/new.202403",)]
