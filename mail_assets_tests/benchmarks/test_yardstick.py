"""The yardstick: its sets have certain answers, and any program can be measured."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.yardstick.citations import find_citations
from benchmarks.yardstick.corpus import History, Mail, read_history, read_mail, withhold_mail
from benchmarks.yardstick.scores import estimate, score
from benchmarks.yardstick.sets import Answer, JudgedSet, Question, make_sets
from benchmarks.yardstick.systems import (
    Bm25,
    PlugError,
    Result,
    System,
    bm25,
    fts5,
    naive,
    notmuch,
    plug,
)
from benchmarks.yardstick.versions import find_lineages
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import Made, make_repository

ROOT = Path(__file__).parents[2]
URL = "https://lists.example.org/r"
BASE = "int load;\n"


def grow(names: str) -> str:
    return BASE + "".join(f"int {name}_of_crane;\n" for name in names.split())


def diff(path: str, names: str) -> str:
    added = "".join(f"+{line}\n" for line in grow(names).splitlines()[1:])
    count = 1 + len(names.split())
    return (
        f"diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n"
        f"+++ b/{path}\n@@ -1 +1,{count} @@\n {BASE}{added}-- \n2.40.0\n"
    )


LIMIT = "limit weight height reach angle speed"
LAMP = "lamp wire bulb switch fuse socket"
RAIL = "rail bolt sleeper buffer points"

#: Name of the mail, sender, date, subject, fields, text.
MAILS: list[tuple[str, str, str, str, str, str]] = [
    ("first", "Odd Vik", "2024-01-02", "Winter berths", "", "Berths are free from May on.\n"),
    (*("limit-1", "Ann Skov", "2024-01-10", "[PATCH] crane: know the limit", ""),
     f"The crane must know it.\n\nSigned-off-by: Ann\n---\n crane.c | 5 +\n\n"
     f"{diff('crane.c', LIMIT.rsplit(' ', 1)[0])}"),
    (*("limit-2", "Ann Skov", "2024-01-20", "[PATCH v2] crane: respect all limits", ""),
     f"It must know.\n\n---\nv1: {URL}/limit-1@example.org\n\n{diff('crane.c', LIMIT)}"),
    (*("reply", "Bo Pier", "2024-01-21", "Re: [PATCH v2] crane: respect all limits"),
     *("In-Reply-To: <limit-2@example.org>\n", "On Sat, Ann wrote:\n> It must.\n\nFine.\n")),
    (*("lamp-0", "Bo Pier", "2024-02-01", "[PATCH 0/2] Lamps", ""),
     "Two lamps.\n\nchange-id: 20240201-lamps-4f3a2b1c\n"),
    (*("lamp-1", "Bo Pier", "2024-02-01", "[PATCH 1/2] pier: a lamp"),
     *("In-Reply-To: <lamp-0@example.org>\n", f"A lamp.\n---\n\n{diff('lamp.c', LAMP)}")),
    (*("lamp-2", "Bo Pier", "2024-02-01", "[PATCH 2/2] pier: a rail"),
     *("In-Reply-To: <lamp-0@example.org>\n", f"A rail.\n---\n\n{diff('rail.c', RAIL)}")),
    (*("lamp-v2-0", "Bo Pier", "2024-02-09", "[PATCH v2 0/2] Lamps", ""),
     "Two lamps.\n\nchange-id: 20240201-lamps-4f3a2b1c\n"),
    (*("lamp-v2-1", "Bo Pier", "2024-02-09", "[PATCH v2 1/2] pier: light it"),
     *("In-Reply-To: <lamp-v2-0@example.org>\n", f"A lamp.\n---\n\n{diff('lamp.c', LAMP)}")),
    (*("lamp-v2-2", "Bo Pier", "2024-02-09", "[PATCH v2 2/2] pier: a rail"),
     *("In-Reply-To: <lamp-v2-0@example.org>\n", f"Longer.\n---\n\n{diff('rail.c', RAIL[:-7])}")),
    ("waves", "Cem Gate", "2024-03-01", "[PATCH] sea: waves", "", f"---\n{diff('sea/w.c', LAMP)}"),
    (*("pier", "Odd Vik", "2024-04-01", "Accidents at the outer pier", ""),
     "Last week a mast broke because nobody had looked at the load [1].\n\n"
     f"[1] {URL}/limit-1@example.org\n"),
    ("last", "Odd Vik", "2024-12-30", "Summer is over", "", "The cranes are in the shed.\n"),
]  # fmt: skip
QUIET = "gull tern skua auk petrel"


def at(day: str) -> int:
    return int(datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp())


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("yard") / "harbor"
    folder.mkdir()
    months: dict[str, str] = {}
    for name, who, day, subject, fields, text in MAILS:
        date = datetime.fromtimestamp(at(day), UTC)
        months[day[:7]] = months.get(day[:7], "") + (
            f"From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: {who} <{who[:3].lower()}@example.org>\n"
            f"Date: {date:%a, %d %b %Y %H:%M:%S} +0000\nMessage-ID: <{name}@example.org>\n"
            f"{fields}Subject: {subject}\n\n{text}\n"
        )
    for month, text in months.items():
        (folder / f"harbor.{month.replace('-', '')}").write_text(text)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    repository = make_repository(tmp_path_factory.mktemp("yard") / "crane.git")
    old, new = at("2024-01-01"), at("2024-01-25")
    repository.commit({"crane.c": BASE.encode()}, "crane: begin", authored=old, committed=old)
    repository.commit(
        {"crane.c": grow(LIMIT).encode()},
        f"crane: respect all limits\n\nIt must.\n\nLink: {URL}/limit-2@example.org\n",
        authored=at("2024-01-20"), committed=new,
    )  # fmt: skip
    day = at("2024-09-09")
    repository.commit(
        {"birds.c": grow(QUIET).encode()}, "birds: count them", authored=day, committed=day
    )
    return repository


@pytest.fixture(scope="session")
def mails(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Mail]:
    return read_mail("harbor", str(archive), "mboxrd", tmp_path_factory.mktemp("yard"))


@pytest.fixture(scope="session")
def history(made: Made, mails: list[Mail], tmp_path_factory: pytest.TempPathFactory) -> History:
    out = tmp_path_factory.mktemp("yard")
    return read_history(str(made.folder), "main", mails[0].sent.replace(year=2023), out)


@pytest.fixture(scope="session")
def sets(mails: list[Mail], history: History) -> dict[str, JudgedSet]:
    return {one.name: one for one in make_sets(mails, history)}


def short(ids: Iterable[str]) -> list[str]:
    return [one.removesuffix("@example.org") for one in ids]


def test_commit_is_asked_for_the_mail_that_it_names(sets: dict[str, JudgedSet]) -> None:
    judged = sets["commits"]
    answers = {
        q.text: short(a.relevant) for q, a in zip(judged.questions, judged.answers, strict=True)
    }
    assert answers == {"crane: respect all limits": ["limit-2"], "birds: count them": []}


def test_question_and_repository_do_not_name_mail(
    sets: dict[str, JudgedSet], made: Made, mails: list[Mail], tmp_path: Path
) -> None:
    questions = json.dumps([one.as_json() for one in sets["commits"].questions])
    assert "example.org/r" not in questions
    history = read_history(str(made.folder), "", mails[0].sent, tmp_path)
    log = git(tmp_path / "repository.git", "log", "--format=%H %B", "--stat").decode()
    assert "Link" not in log
    assert "crane.c" in log
    assert {*re.findall(r"^[0-9a-f]{40}", log, re.M)} == {*history.withheld.values()}
    first = min(history.withheld, key=lambda sha: history.withheld[sha] != sha)
    assert history.withheld[first] == first  # nothing was withheld before it


@pytest.mark.parametrize(("message", "kept"), [
    (f"a\n\nb\n\nLink: {URL}/x@y.z\nAcked-by: C <c@d.e>", "a\n\nb\n\nAcked-by: C <c@d.e>"),
    (f"a\n\nDiscussion: {URL}/x%40y.z", "a\n"),
    ("a\n\nMessage-Id: <x@y.z>\nFixes: 123", "a\n\nFixes: 123"),
    (f"a\n\nsee {URL}/x@y.z/ there [1]\n[1] {URL}/x@y.z", "a\n\nsee (link withheld) there [1]"),
    (f"a\n\n{URL}/x@y.z\n", "a\n\n"),
    ("a\n\nLink: https://example.org/page", "a\n\nLink: https://example.org/page"),
    ("a\n\nCloses: #12\nReported-by: X <x@y.z>", "a\n\nCloses: #12\nReported-by: X <x@y.z>"),
    ("a\n\nLink: mid:x@y.z", "a\n"),
])  # fmt: skip
def test_message_of_a_commit_loses_links_to_mail(message: str, kept: str) -> None:
    assert withhold_mail(message) == kept


def test_lineages_are_those_that_authors_wrote_down(mails: list[Mail]) -> None:
    found = {
        tuple(short(x.mail.message_id for x in one.posted)): one.evidence
        for one in find_lineages(mails)
    }
    assert found == {
        ("limit-1", "limit-2"): ("link",),
        ("lamp-0", "lamp-v2-0"): ("change-id",),
        ("lamp-1", "lamp-v2-1"): ("change-id",),
        ("lamp-2", "lamp-v2-2"): ("change-id",),
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v1: ", "v2: "),  # the label is not that of the linked mail
        ("v1: ", "depends on v1: "),
        ("v1: ", "see "),
        ("[PATCH v2]", "[PATCH]"),  # not a later version
        ("[PATCH v2]", "[PATCH v2 6.1.y]"),  # for a release
        ("Ann Skov", "Bo Pier"),  # somebody else
        ("/limit-1@", "/first@"),  # no patch
    ],
)
def test_uncertain_lineage_is_left_out(archive: Path, tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "changed").mkdir()
    for file in archive.iterdir():
        pieces = re.split(r"(?=^From mboxrd@z)", file.read_text(), flags=re.M)
        changed = (x.replace(old, new) if "\nMessage-ID: <limit-2@" in x else x for x in pieces)
        (tmp_path / "changed" / file.name).write_text("".join(changed))
    mails = read_mail("harbor", str(tmp_path / "changed"), "mboxrd", tmp_path / "out")
    ids = {x.mail.message_id for one in find_lineages(mails) for x in one.posted}
    assert "limit-1@example.org" not in ids


def test_outcome_is_the_commit_and_none_for_other_files(sets: dict[str, JudgedSet]) -> None:
    answers = {short([one.id])[0]: len(one.relevant) for one in sets["outcomes"].answers}
    # the files of the lamps are not of this repository either
    assert answers.pop("limit-2") == 1
    assert {*answers.values()} == {0}
    assert "waves" in answers
    assert "limit-1" not in answers


def test_citation_asks_with_the_sentence_of_the_footnote(mails: list[Mail]) -> None:
    (one,) = find_citations(mails)
    assert one.text == "Last week a mast broke because nobody had looked at the load ."
    assert short([one.citing, one.cited]) == ["pier", "limit-1"]


def test_dependent_questions_are_one_group(sets: dict[str, JudgedSet]) -> None:
    groups = {one.id: one.group for some in sets.values() for one in some.answers}
    assert groups["limit-1@example.org"] == groups["limit-2@example.org"] == groups["citation-0"]
    assert groups["limit-1@example.org"] != groups["lamp-1@example.org"]


def ask(system: System, judged: JudgedSet) -> dict[str, list[str]]:
    return {one.id: short(one.found) for one in system.ask(judged.questions)}


def test_words_find_the_cited_mail(mails: list[Mail]) -> None:
    questions = [
        Question(
            "citations", "q", 'the "crane" AND know:it *', {"without": ["limit-2@example.org"]}
        ),
        Question("citations", "none", "?!", {}),
    ]
    for system in (fts5(mails), bm25(mails)):
        found = ask(system, JudgedSet("citations", questions, []))
        assert found["q"][0] == "limit-1", system.name
        assert "limit-2" not in found["q"]
        assert found["none"] == []


def test_bm25_ranks_rare_words_and_short_texts_first() -> None:
    ranker = Bm25([["pier"], ["pier", "crane"], ["crane"] + ["sea"] * 9, []])
    assert ranker.rank(["crane", "crane", "gull"], 5) == [1, 2]
    assert ranker.rank(["pier", "crane"], 1) == [1]


def test_same_diff_is_found_under_another_title(
    mails: list[Mail], history: History, sets: dict[str, JudgedSet]
) -> None:
    by_title, by_diff = (naive(mails, history, by_diff=one) for one in (False, True))
    lamp = "lamp-1@example.org"
    assert ask(by_title, sets["versions"])[lamp] == []
    # the mail about waves has another path, so another diff
    assert ask(by_diff, sets["versions"])[lamp] == ["lamp-v2-1"]
    for system in (by_title, by_diff):
        first = score(sets["commits"], system.name, system.ask(sets["commits"].questions))
        assert first.figures["first"].value == first.figures["none said"].value == 1


def test_missing_notmuch_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert notmuch(tmp_path).missing == "not installed"


def judged(name: str, *answers: Answer) -> JudgedSet:
    return JudgedSet(name, [Question(name, one.id, "", {}) for one in answers], answers)


def test_measures_are_of_questions_with_an_answer() -> None:
    some = judged(
        "commits",
        Answer("a", ("x",), "1", {}), Answer("b", ("y", "z"), "2", {}), Answer("c", (), "3", {}),
    )  # fmt: skip
    row = score(some, "s", [Result("a", ("x",)), Result("b", ("n", "y")), Result("c", ("n",))])
    values = {name: figure.value for name, figure in row.figures.items()}
    assert values == {"first": 0.5, "in ten": 0.75, "MRR": 0.75, "right": 0.5, "none said": 0}
    row = score(some, "s", [Result("a", ("x",)), Result("c", ())])
    assert row.figures["right"].value == row.figures["none said"].value == 1
    assert row.figures["first"].value == 0.5


def test_versions_count_what_is_known_to_be_right_or_wrong() -> None:
    answers = (Answer("a", ("b",), "g", {"unknown": ["c"]}),)
    some = JudgedSet("versions", [Question("versions", "a", "", {})], answers)
    row = score(some, "s", [Result("a", ("c", "b", "d"))])
    values = {name: figure.value for name, figure in row.figures.items()}
    assert values == {"first": 1, "in ten": 1, "MRR": 1, "right": 0.5}


def test_mail_that_may_be_a_version_is_unknown(mails: list[Mail], history: History) -> None:
    # without the link nobody says that the second mail about limits is a version of the first,
    # which has the title of a rail here
    def change(mail: Mail) -> Mail:
        if mail.patch is None or "limit" not in mail.message_id:
            return mail
        key = "pierarail" if mail.message_id.startswith("limit-1") else mail.patch.title_key
        return replace(mail, patches=[replace(mail.patch, title_key=key, links=[])])

    answers = {one.name: one.answers for one in make_sets([*map(change, mails)], history)}
    unknown = {short([one.id])[0]: short(one.more["unknown"]) for one in answers["versions"]}
    assert unknown == {
        "lamp-0": [], "lamp-v2-0": [],
        "lamp-1": ["waves"], "lamp-v2-1": ["waves"],
        "lamp-2": ["limit-1"], "lamp-v2-2": ["limit-1"],
    }  # fmt: skip


def test_retitled_versions_alone_count_where_a_title_changed(
    sets: dict[str, JudgedSet], mails: list[Mail], history: History
) -> None:
    asked = {one.id: one.more["without"] for one in sets["retitled"].questions}
    wanted = {one.id: short(one.relevant) for one in sets["retitled"].answers}
    assert wanted.pop("limit-1@example.org") == ["limit-2"]
    assert wanted.pop("lamp-v2-1@example.org") == ["lamp-1"]
    assert len(wanted) == 2
    assert {*map(tuple, asked.values())} == {()}
    row = score(sets["retitled"], "s", naive(mails, history, by_diff=True).ask(
        sets["retitled"].questions
    ))  # fmt: skip
    assert row.figures["in ten"].value == 0.5  # the lamps have the same diff, the limits have not


def test_shortened_commit_is_found_and_a_foreign_one_ignored() -> None:
    sha = "0123456789abcdef0123456789abcdef01234567"
    some = judged("outcomes", Answer("a", (sha,), "1", {}), Answer("b", (), "2", {}))
    found = [Result("a", ("f" * 12, sha[:9])), Result("b", ("e" * 40, "012"))]
    row = score(some, "s", found)
    assert row.figures["first"].value == row.figures["none said"].value == 1


def test_interval_is_wider_where_questions_depend() -> None:
    sums = [(float(place < 50), 1.0) for place in range(100)]
    alone = estimate(sums, [str(place) for place in range(100)])
    together = estimate(sums, [str(place // 10) for place in range(100)])
    assert alone.value == together.value == 0.5
    assert together.high - together.low > 2 * (alone.high - alone.low)
    assert estimate(sums, ["g"] * 100)[:3] == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(("program", "fault"), [
    ("print('hello')", "is no result"),
    ('print(\'{"id": 1, "found": []}\')', "is no result"),
    ('print(\'{"id": "z", "found": []}\')', "was not asked"),
    ("import sys; sys.exit(3)", "exit code 3"),
])  # fmt: skip
def test_fault_of_a_plug_is_named(program: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(program)
    system = plug("mine", f"{sys.executable} {file}")
    with pytest.raises(PlugError, match=fault):
        [*system.ask([Question("commits", "a", "words", {})])]


def read_example() -> str:
    text = (ROOT / "docs" / "yardstick.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    return str(program)


def test_program_of_the_guide_is_measured(archive: Path, made: Made, tmp_path: Path) -> None:
    program, out = tmp_path / "mine.py", tmp_path / "out"
    program.write_text(read_example())
    command = [
        *(sys.executable, "-m", "benchmarks.yardstick", "--list", f"harbor={archive}"),
        *("--repository", f"crane={made.folder}", "--out", str(out), "--only", "mine"),
        *("--plug", f"mine={sys.executable} {program} {out}"),
    ]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "| commits | mine | 1.000 [1.000, 1.000] |" in first
    figures = [json.loads(line) for line in (out / "figures.jsonl").read_text().splitlines()]
    assert {one["system"] for one in figures} == {"mine"}
    files: dict[Path, Any] = {file: file.stat().st_mtime_ns for file in out.glob("results/*/*")}
    assert len(files) == 6
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == first
    assert "asking" not in again.stderr
    assert {file: file.stat().st_mtime_ns for file in out.glob("results/*/*")} == files
    command[command.index("--only") - 1 :] = [str(out), "--dialect", "pg"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "use another --out" in refused.stderr
