"""`mail-assets why`: from a line, a file or a commit to the mail that decided it."""

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mail_assets.cli.why import _talk
from mail_assets.postgres.embedded import Cluster
from mail_assets.reading.patch_talk import PatchTalk
from mail_assets_tests.cli.conftest import assert_fails, invoke
from mail_assets_tests.cli.test_imports import find_heavy
from mail_assets_tests.crane import COMMITTED, NEW, Crane
from mail_assets_tests.databases import Databases
from mail_assets_tests.kept_worlds import KeptHome
from mail_assets_tests.web.conftest import serving
from mail_assets_tests.web.test_mcp_patches import call
from mail_assets_tests.world import World, mail

LATER = "Wed, 20 Mar 2024 09:00:00 +0000"


class Checkout:
    """A checkout of the crane; one commit was mailed, reviewed and thanked for."""

    def __init__(self, world: World) -> None:
        self.crane = Crane(world)
        trailers = "Reviewed-by: Bo Pier <bo@example.org>\nLink: https://x.org/r/v1@example.org\n"
        self.sha = self.crane.commit(f"crane: know the limit\n\nIt must.\n\n{trailers}")
        self.mail = self.crane.mail("v1", self.sha)
        self.thanks = mail(
            "thanks",
            f"Applied, thanks: {self.sha[:12]}",
            subject="Re: [PATCH] crane: know the limit",
            references="<v1@example.org>",
            date="Fri, 08 Mar 2024 09:00:00 +0000",
        )
        world.load(self.mail, self.thanks, last="patches")
        self.crane.read()
        world.threads()
        self.crane.link()
        self.made = copy.deepcopy(self.crane.made)
        self.work = world.home / "work"
        self.git("clone", "--quiet", str(self.crane.made.folder), str(self.work))
        self.environ = world.environ(f'[repositories.crane]\nsource = "{self.crane.made.folder}"\n')

    def receive(self, *mails: bytes) -> None:
        """Bring more mail to the list, with all that is made of it but the links of commits."""
        self.crane.world.load(self.mail, self.thanks, *mails, at=9, last="patches")
        self.crane.world.threads()
        self.crane.world.series()
        self.crane.world.summaries()

    def git(self, *arguments: str) -> None:
        """Run git without configuration."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.crane.world.home)}
        subprocess.run(["git", *arguments], check=True, env=environ)

    def why(self, *arguments: str, stdin: str = "") -> Result:
        return invoke("why", *arguments, env=self.environ, stdin=stdin)

    def json(self, *arguments: str, stdin: str = "") -> list[dict[str, Any]]:
        """Return the objects that the command prints."""
        result = self.why(*arguments, "--json", stdin=stdin)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def kept(
    cluster: Cluster, mail_databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, KeptHome]:
    world = World(tmp_path_factory.mktemp("why"), mail_databases.take())
    return Checkout(world), KeptHome(cluster, world.home, world.dsn)


@pytest.fixture
def checkout(kept: tuple[Checkout, KeptHome]) -> Iterator[Checkout]:
    """A checkout with its world, of each test alone."""
    checkout, home = kept
    checkout.crane.made = copy.deepcopy(checkout.made)
    with home.copied() as dsn:
        checkout.crane.world.dsn = checkout.environ["MAIL_PG_DSN"] = dsn
        yield checkout


def test_line_leads_to_its_mail_evidence_and_people(checkout: Checkout) -> None:
    result = checkout.why(str(checkout.work / "crane.c:2"))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{checkout.sha[:12]} crane: know the limit"
    assert "Reviewed by Bo Pier <bo@example.org>" in lines
    assert "Applied from [PATCH] crane: know the limit" in lines
    assert "    trailer, patch-id, subject, author, files" in lines
    assert "Discussion: 2 messages by 1 person" in lines
    assert "Named in Re: [PATCH] crane: know the limit" in lines


def test_commit_is_the_same_by_its_line_and_by_its_id(checkout: Checkout) -> None:
    (by_line,) = checkout.json(str(checkout.work / "crane.c:3"))
    (by_id,) = checkout.json(checkout.sha[:9].upper())
    for key in ("file", "lines", "moved_by"):
        by_line.pop(key)
    assert by_line == by_id
    assert by_id["message_ids"] == ["v1@example.org"]


def test_versions_thanks_and_release_stand_by_a_commit(checkout: Checkout) -> None:
    crane = checkout.crane
    other = crane.diff(checkout.sha).replace("limit_of_crane", "limit_of_the_crane")
    earlier = mail("v0", f"It must.\n---\n{other}", subject="[PATCH] crane: know the limit",
                   date="Sun, 03 Mar 2024 09:00:00 +0000")  # fmt: skip
    later = crane.mail("v1", checkout.sha, "[PATCH v2] crane: know the limit")
    listed = "Ann (1):\n      crane: know the limit\n"
    release = mail("release", listed, subject="[ANNOUNCE] crane v7", date=LATER)
    crane.world.load(earlier, later, checkout.thanks, release, at=9, last="patches")
    crane.world.threads()
    crane.world.series()
    crane.link()
    (found,) = checkout.json(checkout.sha)
    (change,) = found["versions"]
    assert [one["message_id"] for one in change["versions"]] == ["v0@example.org", "v1@example.org"]
    (thanks,) = found["thanks"]
    assert (thanks["message_id"], thanks["names_commit"]) == ("thanks@example.org", True)
    assert thanks["message_ids"] == ["v1@example.org"]
    assert [one["name"] for one in found["released_in"]] == ["crane v7"]
    assert found["unknown"] == []
    text = checkout.why(checkout.sha).stdout
    assert "    of <v1@example.org>\n" in text
    assert "→ v2, 2024-03-04 (title, lines); this one was applied\n" in text
    assert "Said to be applied in Re: [PATCH] crane: know the limit\n" in text
    assert "Released in crane v7, whose announcement lists its title\n" in text
    assert checkout.json(crane.first)[0]["released_in"] == []


def test_mail_beyond_the_first_twenty_is_counted(checkout: Checkout) -> None:
    naming = [
        mail(f"n{n}", f"Since {checkout.sha[:12]} it sways.", subject=f"Sway {n}", date=LATER)
        for n in range(22)
    ]
    checkout.crane.world.load(checkout.mail, checkout.thanks, *naming, at=9, last="patches")
    (found,) = checkout.json(checkout.sha)
    assert (len(found["named_in"]), found["left_out"]) == (20, {"thanks": 0, "named_in": 3})
    assert "\nNamed in 3 further messages\n" in checkout.why(checkout.sha).stdout


def test_decision_of_the_discussion_stands_by_a_commit(checkout: Checkout) -> None:
    ruling = mail("ruling", "Decision: the crane knows its limit.", sender="bo@example.org",
                  subject="Re: [PATCH] crane: know the limit", references="<v1@example.org>",
                  date="Fri, 08 Mar 2024 10:00:00 +0000")  # fmt: skip
    checkout.receive(ruling)
    said = checkout.why(checkout.sha).stdout
    assert "\nSaid: Decision: the crane knows its limit.\n" in said
    assert ", 2024-03-08, <ruling@example.org>\n" in said


def test_page_and_tool_show_the_decision_of_a_commit(checkout: Checkout) -> None:
    ruling = mail(
        "ruling",
        "Decision: the crane knows its limit, says eve.zq@example.org.",
        sender="bo@example.org",
        subject="Re: [PATCH] crane: know the limit",
        references="<v1@example.org>",
    )
    checkout.receive(ruling)
    (stated,) = checkout.json(checkout.sha)[0]["stated"]
    assert (stated["label"], stated["message_id"]) == ("said", "ruling@example.org")
    assert stated["text"] not in [one["text"] for one in checkout.json(checkout.sha)[0]["said"]]
    with serving(checkout.crane.world.settings()) as client:
        page = client.get(f"/commits/{checkout.sha}").text
        (shown,) = client.get(f"/commits.json/{checkout.sha}").json()["stated"]
        text, found = call(client, "why", commits=[checkout.sha])
    (called,) = found["commits"][0]["stated"]
    assert {**shown, "url": called["url"]} == {**called, "html_url": shown["html_url"]}
    assert "said in message ruling@example.org" in text
    assert "eve.zq" in stated["text"]
    assert "eve.zq" not in f"{page} {shown} {text}"
    assert "Decision: the crane knows its limit" in page.partition('id="stated"')[2]


def test_decision_on_another_patch_does_not_stand_by_a_commit(checkout: Checkout) -> None:
    crane = checkout.crane
    other = crane.commit("crane: paint it", NEW + b"int paint;\nint brush;\nint colour;\n")
    paint = mail("paint", f"---\n{crane.diff(other)}", subject="[PATCH 2/2] crane: paint it",
                 references="<v1@example.org>", date="Mon, 04 Mar 2024 11:00:00 +0000")  # fmt: skip
    ruling = mail("ruling", "Decision: the crane is red.", sender="bo@example.org",
                  subject="Re: [PATCH 2/2] crane: paint it",
                  references="<v1@example.org> <paint@example.org>", date=LATER)  # fmt: skip
    checkout.receive(paint, ruling)
    (found,) = checkout.json(checkout.sha)
    assert "Decision: the crane is red." in json.dumps(found["summary"])
    assert "Decision: the crane is red." not in checkout.why(checkout.sha).stdout
    assert "Decision: the crane is red." in checkout.why(other).stdout


def test_list_of_other_patches_is_no_decision_of_a_commit(checkout: Checkout) -> None:
    bot = (
        "Hello:\n\nThis series was applied to crane.git (main)\nby Cem Gate <cem@example.org>:\n\n"
        "Here is the summary with links:\n  - [1/2] crane: paint it\n"
        "    https://git.example.org/c/abcdef012345\n"
    )
    applied = mail("applied", bot, sender="bot@example.org", subject="Re: [PATCH 0/2] Cranes",
                   references="<v1@example.org>", date=LATER)  # fmt: skip
    checkout.receive(applied)
    (found,) = checkout.json(checkout.sha)
    assert "[1/2] crane: paint it" in json.dumps(found["summary"])
    assert "paint it" not in checkout.why(checkout.sha).stdout


def test_release_that_lists_a_commit_is_no_mail_of_it(checkout: Checkout) -> None:
    never = checkout.crane.commit("crane: was never mailed to a list", b"int never;\n")
    listed = "Ann (1):\n      crane: was never mailed to a list\n"
    release = mail("release", listed, subject="crane v8 released", date=LATER)
    checkout.receive(release)
    (found,) = checkout.json(never)
    assert (found["abstained"], found["message_ids"]) == (True, [])
    assert [one["message_id"] for one in found["released_in"]] == ["release@example.org"]
    assert "Released in crane v8 released" in checkout.why(never).stdout


@pytest.mark.parametrize("line", [1, 4])
def test_line_without_certain_mail_is_reported(checkout: Checkout, line: int) -> None:
    result = checkout.why(str(checkout.work / f"crane.c:{line}"))
    assert result.exit_code == 0
    assert "No mail is certain: no mail has its patch-id" in result.stdout
    assert "Applied" not in result.stdout


def test_talk_without_sentences_says_so() -> None:
    [line] = _talk(PatchTalk(2, 1, (), frozenset()))
    assert line == "Said of this patch, in 2 messages by 1 person: no sentence was chosen"


def test_explaining_imports_no_client_of_servers(checkout: Checkout) -> None:
    new = checkout.crane.commit("crane: not read yet", b"int x;\n")
    for place in (checkout.sha, f"{checkout.work}/crane.c:2", new):
        assert find_heavy(["why", place], checkout.environ) <= {"psycopg", "tokenizers"}


def test_file_has_its_commits_by_their_lines(checkout: Checkout) -> None:
    found = checkout.json(str(checkout.work / "crane.c"))
    assert [one["lines"] for one in found] == [[1, 4], [2, 3]]
    assert [one["abstained"] for one in found] == [True, False]


def test_changed_work_tree_is_matched_to_the_commit(checkout: Checkout) -> None:
    path = checkout.work / "crane.c"
    path.write_bytes(b"// mine\n" + NEW)
    (found,) = checkout.json(f"{path}:3")
    assert found["sha"] == checkout.sha
    assert_fails(checkout.why(f"{path}:1"), 1, "not committed yet")
    assert [one["lines"] for one in checkout.json(f"{path}:1-4")] == [[3, 4], [2]]


@pytest.mark.parametrize("lines", ["2-3", "2,3"])
def test_lines_of_one_commit_are_explained_like_one(checkout: Checkout, lines: str) -> None:
    (found,) = checkout.json(str(checkout.work / f"crane.c:{lines}"))
    assert (found["sha"], found["lines"]) == (checkout.sha, [2, 3])
    assert "Discussion: 2 messages" in checkout.why(str(checkout.work / f"crane.c:{lines}")).stdout


def test_revision_of_the_checkout_is_its_commit(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout.work)
    for name in ("HEAD", "main", "HEAD~0"):
        (found,) = checkout.json(name)
        assert found["sha"] == checkout.sha


def test_shallow_clone_does_not_invent_who_wrote_a_line(checkout: Checkout) -> None:
    crane, work = checkout.crane, checkout.crane.world.home / "shallow"
    crane.made.commit({"hook.c": NEW}, "hook", committed=COMMITTED)
    crane.made.commit({"crane.c": NEW + b"int x;\n"}, "last", committed=COMMITTED)
    checkout.git("clone", "--quiet", "--depth", "2", f"file://{crane.made.folder}", str(work))
    assert_fails(checkout.why(f"{work}/crane.c:2"), 1, "older than this shallow clone")
    result = checkout.why(f"{work}/crane.c", "--json")
    assert [json.loads(x)["lines"] for x in result.stdout.splitlines()] == [[5]]
    assert "4 lines of" in result.stderr


def test_many_commits_have_a_line_each(checkout: Checkout) -> None:
    ids = f"# two\n{checkout.sha}\n\n{checkout.crane.first}\n"
    first, second = checkout.json("--shas", "-", stdin=ids)
    assert (first["sha"], first["message_ids"]) == (checkout.sha, ["v1@example.org"])
    assert first["evidence"] == [
        {
            "message_id": "v1@example.org",
            "kind": "applied",
            "evidence": ["trailer", "patch-id", "subject", "author", "files"],
        }
    ]
    assert (second["abstained"], second["message_ids"]) == (True, [])


def test_unknown_commit_among_many_is_a_line_and_a_note(checkout: Checkout) -> None:
    result = checkout.why("--shas", "-", "--json", stdin=f"{'b' * 40}\n{checkout.sha}\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 0
    assert (first["sha"], first["abstained"]) == ("b" * 40, True)
    assert second["sha"] == checkout.sha
    assert "1 commit not in any repository" in result.stderr
    assert checkout.why("--shas", "-", "--json", stdin=f"{'b' * 40}\n").exit_code == 1


def test_id_that_begins_several_commits_is_a_line(checkout: Checkout) -> None:
    crane, short = checkout.crane, checkout.sha[:9]
    with crane.world.connect() as connection:
        twin = f"{short}{crane.first[9:]}"
        connection.execute("update commits set sha = %s where sha = %s", [twin, crane.first])
    result = checkout.why("--shas", "-", "--json", stdin=f"{short}\n{checkout.sha}\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, first["sha"], first["abstained"]) == (0, short, True)
    assert first["reason"].startswith(f"{short} begins several commits: ")
    assert second["sha"] == checkout.sha


def test_commit_newer_than_the_last_run_is_linked_now(checkout: Checkout) -> None:
    crane = checkout.crane
    text = NEW + b"int lift(void);\nint lower(void);\nint turn(void);\nint stop(void);\n"
    new = crane.commit("crane: lift it", text)
    body = f"---\n{crane.diff(new)}"
    more = mail("new", body, subject="[PATCH] crane: lift it")
    checkout.receive(more)
    (found,) = checkout.json(new[:12])
    assert found["message_ids"] == ["new@example.org"]


def test_cherry_pick_is_explained_by_its_original(checkout: Checkout) -> None:
    crane = checkout.crane
    picked = crane.made.commit(
        {"other.c": b"int a;\n"},
        f"stable: limit\n\n(cherry picked from commit {checkout.sha})",
        committed=COMMITTED,
    )
    again = crane.made.commit(
        {"other.c": b"int b;\n"},
        f"older: limit\n\ncommit {picked} upstream.\n\n(cherry picked from commit 0123456)",
        committed=COMMITTED,
    )
    for sha in (picked, again):
        (found,) = checkout.json(sha)
        assert (found["sha"], found["followed"]) == (sha, checkout.sha)
        assert found["message_ids"] == ["v1@example.org"]
        assert f"It carries over commit {checkout.sha[:12]}" in checkout.why(sha).stdout
    (line,) = checkout.json("--shas", "-", stdin=f"{picked}\n")
    assert (line["sha"], line["message_ids"]) == (picked, ["v1@example.org"])


def test_moved_lines_lead_to_the_commit_that_wrote_them(checkout: Checkout) -> None:
    long = b"".join(b"int the_limit_of_crane_number_%d = %d;\n" % (n, n) for n in range(9))
    crane = checkout.crane
    wrote = crane.made.commit({"crane.c": NEW + long}, "write", committed=COMMITTED)
    crane.made.commit({"crane.c": NEW, "hook.c": long}, "move", committed=COMMITTED)
    checkout.git("-C", str(checkout.work), "pull", "--quiet")
    (found,) = checkout.json(str(checkout.work / "hook.c:4"))
    assert (found["sha"], found["moved_by"]) == (wrote, None)


def test_moved_line_without_mail_shows_who_moved_it(checkout: Checkout) -> None:
    long = b"".join(b"int the_limit_of_crane_number_%d = %d;\n" % (n, n) for n in range(9))
    crane = checkout.crane
    wrote = crane.made.commit({"crane.c": NEW + long}, "write", committed=COMMITTED)
    moved = crane.made.commit(
        {"crane.c": NEW, "hook.c": long}, "hook: take it", committed=COMMITTED
    )
    mails = checkout.mail, checkout.thanks, crane.mail("move", moved, "[PATCH] hook: take it")
    crane.world.load(*mails, at=9, last="patches")
    checkout.git("-C", str(checkout.work), "pull", "--quiet")
    place = str(checkout.work / "hook.c:4")
    (found,) = checkout.json(place)
    assert (found["sha"], found["message_ids"]) == (wrote, [])
    assert (found["moved_by"]["sha"], found["moved_by"]["message_ids"]) == (
        moved,
        ["move@example.org"],
    )
    said = checkout.why(place).stdout
    assert f"\nMoved or copied to this place by a commit with mail:\n\n{moved[:12]} " in said


def test_moved_lines_of_several_commits_show_who_moved_them(checkout: Checkout) -> None:
    blocks = [
        b"".join(b"int the_limit_of_crane_number_%d = %d;\n" % (n, n) for n in range(at, at + 9))
        for at in (0, 20)
    ]
    crane = checkout.crane
    wrote = [
        crane.made.commit({"crane.c": NEW + b"".join(blocks[:n])}, "write", committed=COMMITTED)
        for n in (1, 2)
    ]
    moved = crane.made.commit(
        {"crane.c": NEW, "hook.c": b"".join(blocks)}, "hook: take it", committed=COMMITTED
    )
    mails = checkout.mail, checkout.thanks, crane.mail("move", moved, "[PATCH] hook: take it")
    crane.world.load(*mails, at=9, last="patches")
    checkout.git("-C", str(checkout.work), "pull", "--quiet")
    for place in ("hook.c:5-12", "hook.c"):
        found = checkout.json(str(checkout.work / place))
        assert {one["sha"] for one in found} == {*wrote}
        assert {one["moved_by"]["sha"] for one in found} == {moved}
    said = checkout.why(str(checkout.work / "hook.c")).stdout
    assert said.count(f"Moved or copied to this place by\n{moved[:12]} ") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{work}/crane.c:99"], 1, "has no line 99: it has 4"),
        (["{work}/crane.c:9-10"], 1, "has no lines 9 to 10"),
        (["{work}/crane.c:0"], 2, "lines count from 1"),
        (["{work}/crane.c:3-1"], 2, "lines count from 1"),
        (["{work}/nothing.c:1"], 1, "nothing.c is not in the newest commit"),
        (["{work}/new.c:1"], 1, "not committed yet"),
        (["{work}"], 1, "is a folder"),
        (["{home}/lists.toml:1"], 1, "is not in a checkout of a git repository"),
        (["beefbeefbeef"], 1, "has beefbeefbeef"),
        ([], 2, "give either"),
        (["{work}/crane.c:1", "--shas", "-"], 2, "give either"),
    ],
)
def test_missing_file_or_commit_is_one_line(
    checkout: Checkout, arguments: list[str], code: int, said: str
) -> None:
    places = {"work": checkout.work, "home": checkout.crane.world.home}
    (checkout.work / "new.c").write_bytes(NEW)
    result = checkout.why(*(one.format(**places) for one in arguments))
    assert_fails(result, code, said)


def test_renamed_file_names_the_commit_that_did_it(checkout: Checkout) -> None:
    here = ("-C", str(checkout.work))
    checkout.git(*here, "mv", "crane.c", "hook.c")
    checkout.git(*here, "-c", "user.name=A", "-c", "user.email=a@x", "commit", "-qm", "rename")
    assert_fails(checkout.why(f"{checkout.work}/crane.c:2"), 1, "deleted or renamed it")
    (found,) = checkout.json(f"{checkout.work}/hook.c:2")
    assert found["sha"] == checkout.sha


@pytest.mark.parametrize("content", [b"a line\n", b""])
def test_terminal_obeys_no_name_of_a_file(checkout: Checkout, content: bytes) -> None:
    path = checkout.work / "hook\x1b]0;owned\x07\u202e.c"
    path.write_bytes(content)
    here = ("-C", str(checkout.work))
    checkout.git(*here, "add", path.name)
    checkout.git(*here, "-c", "user.name=A", "-c", "user.email=a@x", "commit", "-qm", "hook")
    result = checkout.why(str(path))
    assert "hook\ufffd]0;owned\ufffd.c" in result.output
    assert not {"\x1b", "\x07", "\u202e"} & {*result.output}


@pytest.mark.parametrize("line", ["no sha", "--help", "x" * 40])
def test_file_of_ids_has_ids_alone(checkout: Checkout, line: str) -> None:
    assert_fails(checkout.why("--shas", "-", stdin=f"{line}\n"), 2, "is no id of a commit")


def test_checkout_runs_nothing_that_it_names(checkout: Checkout, tmp_path: Path) -> None:
    ran, tool = tmp_path / "ran", tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    tool.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "diff.evil.textconv", "core.pager"):
        checkout.git("-C", str(checkout.work), "config", key, str(tool))
    info = checkout.work / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("* filter=evil diff=evil\n")
    checkout.work.joinpath("crane.c").write_bytes(b"// mine\n" + NEW)
    assert checkout.json(str(checkout.work / "crane.c:3"))[0]["sha"] == checkout.sha
    assert not ran.exists()
