"""Public-inbox on a server: mirrors of its repositories, and its search for a month."""

import gzip
import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from mail_assets.month import ListMonth
from mail_assets.sources import public_inbox
from mail_assets.sources.git import fetch_repository
from mail_assets.sources.source import ArchiveSource, Fetched, SourceError
from mail_assets_tests.http.loopback import listen
from mail_assets_tests.sources.inboxes import (
    PublicInbox,
    add_mails,
    git,
    make_repository,
    needs_public_inbox,
)
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    fetch_months,
    mail,
    open_list,
    split_mboxrd,
)

FEBRUARY = ListMonth("dev", "2024-02")


@pytest.fixture
def requests() -> list[str]:
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def served(tmp_path: Path, requests: list[str]) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL at which a plain web server has it (git's dumb protocol)."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            requests.append(self.path)
            if not self.path.startswith("/moved/"):
                return super().send_head()
            self.send_response(301)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return None

        def log_message(self, format: str, *args: object) -> None:
            pass

    with listen(partial(Handler, directory=folder)) as port:
        yield folder, f"http://127.0.0.1:{port}"


def publish(inbox: Path) -> None:
    """Write what public-inbox's server would answer: manifest.js.gz, and git's own lists."""
    manifest = {}
    for epoch in sorted((inbox / "git").iterdir()):
        git(epoch, "update-server-info")
        fingerprint = git(epoch, "rev-parse", "master").decode().strip()
        manifest[f"/dev/git/{epoch.name}"] = {"modified": 1, "fingerprint": fingerprint}
    (inbox / "manifest.js.gz").write_bytes(gzip.compress(json.dumps(manifest).encode()))


def open_at(url: str, cache: Path, kind: str = "public-inbox") -> ArchiveSource:
    return open_list(url, cache, kind)


def test_epochs_are_mirrored_and_read(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    add_mails(make_repository(folder / "dev/git/0.git"), [mail(1), mail(2, APRIL_DATE)])
    add_mails(make_repository(folder / "dev/git/1.git"), [mail(3)])
    publish(folder / "dev")
    months = fetch_months(open_at(f"{url}/dev/", tmp_path / "cache"), tmp_path)
    assert months == {"2024-03": [mail(1), mail(3)], "2024-04": [mail(2, APRIL_DATE)]}


def test_only_an_epoch_with_news_is_fetched(
    served: tuple[Path, str], tmp_path: Path, requests: list[str]
) -> None:
    folder, url = served
    for number in (0, 1):
        epoch = make_repository(folder / f"dev/git/{number}.git")
        add_mails(epoch, [mail(number)])
    publish(folder / "dev")
    before = open_at(f"{url}/dev", tmp_path / "cache").versions()
    requests.clear()
    assert open_at(f"{url}/dev", tmp_path / "cache").versions() == before
    assert requests == ["/dev/manifest.js.gz"]
    add_mails(folder / "dev/git/1.git", [mail(2, APRIL_DATE)])
    publish(folder / "dev")
    source = open_at(f"{url}/dev", tmp_path / "cache")
    assert isinstance(source.fetch(APRIL_2024, tmp_path / "x"), Fetched)
    assert source.versions()[MARCH_2024] == before[MARCH_2024]
    assert not any("/0.git/" in path for path in requests)


def test_rewritten_history_replaces_the_mirrors(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    epoch = make_repository(folder / "dev/git/0.git")
    add_mails(epoch, [mail(1), mail(2)])
    publish(folder / "dev")
    open_at(f"{url}/dev", tmp_path / "cache").versions()
    git(epoch, "update-ref", "-d", "refs/heads/master")
    add_mails(epoch, [mail(2)])
    publish(folder / "dev")
    months = fetch_months(open_at(f"{url}/dev", tmp_path / "cache"), tmp_path)
    assert months == {"2024-03": [mail(2)]}


def test_one_repository_without_manifest_is_inbox(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    add_mails(make_repository(folder / "dev.git"), [mail(1)])
    git(folder / "dev.git", "update-server-info")
    months = fetch_months(open_at(f"{url}/dev.git", tmp_path / "cache"), tmp_path)
    assert months == {"2024-03": [mail(1)]}


@pytest.mark.parametrize("has_manifest", [True, False])
def test_inbox_that_has_moved_is_mirrored_from_its_new_place(
    served: tuple[Path, str], tmp_path: Path, requests: list[str], has_manifest: bool
) -> None:
    folder, url = served
    place = folder / ("dev/git/0.git" if has_manifest else "dev")
    add_mails(make_repository(place), [mail(1)])
    git(place, "update-server-info")
    if has_manifest:
        publish(folder / "dev")
    months = fetch_months(open_at(f"{url}/moved/dev", tmp_path / "cache"), tmp_path)
    assert months == {"2024-03": [mail(1)]}
    assert [path for path in requests if path.startswith("/moved/")] == [
        "/moved/dev/manifest.js.gz"
    ]


def test_git_follows_no_redirect(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    add_mails(make_repository(folder / "dev.git"), [mail(1)])
    git(folder / "dev.git", "update-server-info")
    with pytest.raises(SourceError, match=r"git: .*redirect|git: .*error: 301"):
        fetch_repository(f"{url}/moved/dev.git", tmp_path / "mirror.git")


def test_git_connects_to_address_that_was_checked(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = served
    add_mails(make_repository(folder / "dev.git"), [mail(1)])
    git(folder / "dev.git", "update-server-info")
    port = url.rpartition(":")[2]
    place = f"http://lists.example.org:{port}/dev.git"
    address = f"lists.example.org:{port}:127.0.0.1"
    fetch_repository(place, tmp_path / "mirror.git", address=address)
    assert git(tmp_path / "mirror.git", "rev-list", "--count", "master").strip() == b"1"


@pytest.mark.parametrize(("manifest", "reason"), [
    (b"<html>", "/manifest.js.gz is not a manifest: .*open it in a browser"),
    (b"[]", "/manifest.js.gz is not a manifest; open it in a browser"),
    (b"[" * 100_000, "/manifest.js.gz is not a manifest: .*open it in a browser"),
    (b"\x1f\x8bdamaged", "/manifest.js.gz is not a manifest"),
    (None, " cannot be fetched: git: "),
    (b'{"/dev/git/7.git": {}}', r"/git/7\.git cannot be fetched: git: "),
])  # fmt: skip
def test_fault_of_a_server_is_an_error_without_mirror(
    served: tuple[Path, str], tmp_path: Path, manifest: bytes | None, reason: str
) -> None:
    folder, url = served
    (folder / "dev").mkdir()
    if manifest is not None:
        (folder / "dev/manifest.js.gz").write_bytes(manifest)
    with pytest.raises(SourceError, match=f"list dev: {url}/dev{reason}"):
        open_at(f"{url}/dev", tmp_path / "cache").versions()
    assert [*tmp_path.rglob("*.git")] == []


def test_names_in_a_manifest_lead_to_no_other_place(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    (folder / "dev").mkdir()
    names = ["/dev/git/../../0.git/x", "/dev/git/-1.git", "ext::sh -c x", "/other/git/3.git"]
    (folder / "dev/manifest.js.gz").write_bytes(
        gzip.compress(json.dumps(dict.fromkeys(names)).encode())
    )
    asked: list[tuple[str, Path]] = []
    monkeypatch.setattr(
        public_inbox, "fetch_repository", lambda url, folder, *_: asked.append((url, folder))
    )
    source = open_at(f"{url}/dev", tmp_path / "cache")
    with pytest.raises(SourceError, match="not a public-inbox"):
        source.versions()
    assert [(place, path.name) for place, path in asked] == [(f"{url}/dev/git/3.git", "3.git")]


def test_password_goes_to_git_but_not_to_arguments_or_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nenv > {tmp_path}/env\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/HEAD").touch()
    fetch_repository("https://h.example.org/dev", tmp_path / "m", ("ann", "secret"))
    assert "YW5uOnNlY3JldA==" in (tmp_path / "env").read_text()  # ann:secret in base64
    for text in ("secret", "YW5uOnNlY3JldA"):
        assert text not in (tmp_path / "arguments").read_text()


# --- public-inbox's own server ------------------------------------------------------------------


@pytest.fixture(scope="module")
def boats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an inbox that public-inbox has made and serves."""
    home = tmp_path_factory.mktemp("home")
    inbox = PublicInbox(home)
    to = "To: dev@example.org\nSubject: x\n"
    for number, date in enumerate(EDGES):
        inbox.deliver(mail(number, date, "From here\n", to))
    with inbox.serve() as url:
        yield url


EDGES = (
    "Fri, 01 Mar 2024 00:00:00 +0000",
    "Sun, 31 Mar 2024 23:59:59 +0000",
    "Mon, 01 Apr 2024 00:00:00 +0000",
)


@needs_public_inbox
@pytest.mark.parametrize("kind", ["public-inbox", "public-inbox-mbox"])
def test_public_inbox_gives_each_message_one_month(boats: str, tmp_path: Path, kind: str) -> None:
    source = open_at(boats, tmp_path / "cache", kind)
    versions = source.versions()
    assert {MARCH_2024, APRIL_2024} <= set(versions)
    numbers = {}
    for month in (MARCH_2024, APRIL_2024):
        found = source.fetch(month, tmp_path / month.month)
        assert isinstance(found, Fetched)
        data = found.path.read_bytes()
        mails = split_mboxrd(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        assert all(raw.endswith(b"\n\nFrom here\n") for raw in mails)
        numbers[month] = sorted(raw.split(b"Message-ID: <")[1][:1] for raw in mails)
    assert numbers == {MARCH_2024: [b"0", b"1"], APRIL_2024: [b"2"]}
    assert source.fetch(FEBRUARY, tmp_path / "x") is None
    assert not (tmp_path / "x").exists()
