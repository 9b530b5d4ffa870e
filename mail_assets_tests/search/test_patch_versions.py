"""Patches in search: states, versions and commits, as fields and in hits."""

import difflib
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from mail_assets.month import ListMonth
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.statements import read_value
from mail_assets.search.language.request import MODES, Group, Request, RequestError
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.sources.repository import CommitSource
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.group_series import group_series
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.read_commits import read_month_commits
from mail_assets.steps.read_patches import make_patches
from mail_assets.store.open import open_store
from mail_assets.tables.commits import Discussed
from mail_assets.workspace import Workspace
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import Corpus, corpus_at, ids, index_everything
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import make_repository

BAY = "bay-dev"
#: 2024-03-20.
COMMITTED = 1_710_928_800
OLD = "".join(f"int hawser_{n};\n" for n in range(9))
LIMIT, GULLS, LAMP = "hawser: know the limit", "gulls: count the birds", "lamp: burn longer"
EDITED = "gulls: number the seabirds"


#: The mail that led to a change of winch_turn does not contain that name.
WINCH = "int winch_turn(int way)\n{\n" + "".join(f"\tpull({n});\n" for n in range(9)) + "}\n"
DRUM = "The barrel jams at slack water."


class Bay(NamedTuple):
    """A searcher over patches, two commits made of them, and a commit that mail led to."""

    searcher: Searcher
    first: str
    limit: str
    gulls: str
    winch: str

    def search(self, query: str, **options: object) -> Response:
        return self.searcher.search(Request(query, **options))  # type: ignore[arg-type]

    def find(self, query: str, **options: object) -> list[str]:
        """Return the names of the messages that are hits."""
        found = self.search(query, **{"group": Group.message, **options})
        return [one.partition("@")[0] for one in ids(found)]

    def rows(self, query: str, **options: object) -> list[list[str]]:
        """Return the names of the hits of each conversation."""
        found = self.search(query, **options).conversations
        return [[one.partition("@")[0] for one in row.best] for row in found]

    def lines(self, query: str, **options: object) -> dict[str, str]:
        """Return the descriptions of the states of patches in hits."""
        hits = self.search(query, **options).hits
        return {hit.message_id.partition("@")[0]: hit.patch.words for hit in hits if hit.patch}


def change(*lines: str, path: str = "hawser.c") -> str:
    """Return a diff that adds lines."""
    new = OLD + "".join(f"int {one};\n" for one in lines)
    diff = difflib.unified_diff(
        OLD.splitlines(True), new.splitlines(True), f"a/{path}", f"b/{path}"
    )
    return f"diff --git a/{path} b/{path}\n{''.join(diff)}--\n2.40\n"


def mail(name: str, subject: str, day: int, text: str, above: str = "", who: str = "ann") -> str:
    references = f"References: <{above}@bay>\n" if above else ""
    return (
        f"From {who}@example.org Fri Mar {day:2} 10:00:00 2024\n"
        f"From: {who.title()} <{who}@example.org>\nTo: bay-dev@lists.example.org\n"
        f"Subject: {subject}\nDate: {day} Mar 2024 10:00:00 +0000\n"
        f"Message-ID: <{name}@bay>\n{references}\n{text}\n\n"
    )


@pytest.fixture(scope="module")
def bay(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, model_cache: Path
) -> Iterator[Bay]:
    """A list with patches in several versions, and the repository to which two were applied."""
    home = tmp_path_factory.mktemp("bay")
    made = make_repository(home / "bay.git")
    dan = "Dan <dan@example.org>"
    files = {"hawser.c": OLD.encode(), "deck/winch.c": WINCH.encode()}
    first = made.commit(files, "first", author=dan, committed=COMMITTED)
    new = OLD + "int limit;\nint strain;\n"
    limit = made.commit({"hawser.c": new.encode()}, LIMIT, committed=COMMITTED)
    link = "Link: https://x.org/r/gulls@bay\n"
    gulls = made.commit({"gulls.c": b"int forty;\n"}, f"{EDITED}\n\n{link}", committed=COMMITTED)

    slower = WINCH.replace("pull(8)", "slack(8)")
    said = "Link: https://x.org/r/drum@bay\n"
    winch = made.commit(
        {"deck/winch.c": slower.encode()}, f"turn slower\n\n{said}", author=dan, committed=COMMITTED
    )

    def landed(sha: str) -> str:
        return f"{git(made.folder, 'show', '--format=', sha).decode()}--\n2.40\n"

    mails = [
        mail("limit-1", f"[PATCH] {LIMIT}", 1, f"One hawser must know.\n---\n{change('limit')}"),
        mail("talk", f"Re: [PATCH] {LIMIT}", 2, "Does the hawser strain?", "limit-1", "bo"),
        mail(
            "limit-2",
            f"[PATCH v2] {LIMIT}",
            5,
            f"Whoever pulls at it asks for its limit.\n---\n{landed(limit)}",
        ),
        mail(
            "limit-3",
            f"[PATCH v3] {LIMIT}",
            9,
            f"As Bo says, limit and strain are two.\n---\n{change('limit', 'more')}",
        ),
        mail("lamp-1", f"[PATCH] {LAMP}", 3, f"Oil is cheap.\n---\n{change('oil', path='lamp.c')}"),
        mail(
            "lamp-2",
            f"[PATCH v2] {LAMP}",
            6,
            f"Wicks are cheaper than that.\n---\n{change('oil', 'wick', path='lamp.c')}",
        ),
        mail("gulls", f"[PATCH] {GULLS}", 7, f"Forty.\n---\n{landed(gulls)}"),
        mail("drum", "Slack water", 8, DRUM, who="bo"),
        mail("words", "The hawser and its limit", 8, "Know the limit of the hawser.", who="bo"),
    ]
    (home / "bay").mkdir()
    (home / "bay" / "bay-dev.2024-03.mbox").write_text("".join(mails))
    (home / "lists.toml").write_text(
        f'[{BAY}]\nsource = "bay"\nlanguage = "english"\n'
        f'[repositories.bay]\nsource = "{made.folder}"\nlists = ["{BAY}"]\n'
    )
    settings = corpus_at(home, new_database(cluster), model_cache).settings
    index_everything(settings)
    with settings.database.connect("test") as connection:
        workspace = Workspace(connection, open_store(settings.store), lambda line: None)
        month = ListMonth(BAY, "2024-03")
        make_patches(workspace, month)
        source = CommitSource("bay", str(made.folder), "", home / "cache", HttpOptions())
        read_month_commits(workspace, month, {"bay": source})
        group_series(connection, lambda line: None)
        link_commits(workspace, {"bay": Discussed((BAY,))})
    with open_searcher(settings.search) as opened:
        yield Bay(opened, first, limit, gulls, winch)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("is:patch", {"limit-1", "limit-2", "limit-3", "lamp-1", "lamp-2", "gulls"}),
        ("is:applied", {"limit-2", "gulls"}),
        ("kind:applied hawser", {"limit-2"}),
        ("is:open", {"lamp-2"}),
        ("version:latest", {"limit-2", "lamp-2", "gulls"}),
        ("version:latest lamp", {"lamp-2"}),
        ("is:patch -version:latest", {"limit-1", "limit-3", "lamp-1"}),
        ("-is:applied -is:open", {"limit-1", "limit-3", "lamp-1", "talk", "words", "drum"}),
        ("is:applied or is:open", {"limit-2", "gulls", "lamp-2"}),
        ("is:applied is:open", set()),
        ("is:open before:2024-03-04", set()),
        ("(is:open or from:bo) -lamp", {"talk", "words", "drum"}),
        ("-(is:open or is:applied) is:patch", {"limit-1", "limit-3", "lamp-1"}),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_states_of_patches_are_fields(bay: Bay, query: str, found: set[str], mode: str) -> None:
    assert {*bay.find(query, mode=mode)} == found
    assert {*bay.find(f"{query} sort:date", mode=mode)} == found


@pytest.mark.parametrize("mode", MODES)
def test_commit_finds_its_mails_in_every_mode(bay: Bay, mode: str) -> None:
    for sha in (bay.limit, bay.limit[:7], bay.limit[:12].upper()):
        assert {*bay.find(f"commit:{sha}", mode=mode)} == {"limit-1", "limit-2", "limit-3"}
        assert {*bay.find(f"hawser commit:{sha} -is:applied", mode=mode)} == {"limit-1", "limit-3"}
    assert bay.find(f"birds commit:{bay.gulls}", mode=mode) == ["gulls"]
    assert "limit-2" not in bay.find(f"hawser -commit:{bay.limit}", mode=mode)
    both = {*bay.find(f"commit:{bay.gulls} or commit:{bay.limit[:9]}", mode=mode)}
    assert both == {"limit-1", "limit-2", "limit-3", "gulls"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("commit:abcdefg", "write 7 or more digits (0-9, a-f) of its SHA"),
        ("commit:abc123", "write 7 or more digits"),
        ("version:newest", "version 'newest': allowed are latest"),
        ("is:aplied", "kind 'aplied': allowed are patch, reply, first, attachment, applied, open"),
    ],
)
def test_wrong_value_names_the_right_ones(bay: Bay, query: str, said: str) -> None:
    with pytest.raises(RequestError) as error:
        bay.search(query)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "query", ["version:9.6", "commit:", "commit:fix,", "version:2", "commit:a/b"]
)
def test_other_values_are_text(bay: Bay, query: str) -> None:
    assert bay.search(query).permalink.strip("\\") == query


def test_unknown_unlinked_and_short_commits_are_noted(bay: Bay) -> None:
    assert bay.search("commit:0000000").notes == ("No commit has an id that begins with 0000000.",)
    (note,) = bay.search(f"commit:{bay.first}").notes
    assert note == f"No mail here is certain to belong to commit {bay.first[:12]}."
    twin = bay.limit[:9] + bay.first[9:]
    connection = bay.searcher.retriever.connection
    renamed = "update commits set sha = %s where sha = %s"
    connection.execute(renamed, [twin, bay.first])
    try:
        answer = bay.search(f"commit:{bay.limit[:9]}")
        assert "limit-2@bay" in ids(answer)
        (note,) = answer.notes
        assert note.startswith(f"{bay.limit[:9]} is ambiguous: 2 commits begin so (")
        assert not bay.search(f"commit:{bay.limit}").notes
    finally:
        connection.execute(renamed, [bay.first, twin])


def test_commit_without_repositories_finds_nothing_with_a_note(corpus: Corpus) -> None:
    with open_searcher(corpus.search_settings) as searcher:
        answer = searcher.search(Request("lease commit:abc1234"))
    assert not answer.hits
    assert answer.notes[0].startswith("No commits are stored here, so commit: finds nothing")


def test_hit_has_the_state_of_its_patch(bay: Bay) -> None:
    found = bay.lines("is:patch", group=Group.message)
    limit = f"applied as {bay.limit[:12]} on 2024-03-20"
    assert found == {
        "limit-1": f"v1 of 3, superseded by v3; v2 was {limit}",
        "limit-2": f"v2 of 3, {limit}",
        "limit-3": f"v3 of 3, sent after v2, which was {limit}",
        "lamp-1": "v1 of 2, superseded by v2, which is open",
        "lamp-2": "v2 of 2, open",
        "gulls": f"v1, applied as {bay.gulls[:12]} on 2024-03-20",
    }
    (hit,) = bay.search("id:limit-1@bay").hits
    assert hit.patch
    assert (hit.patch.version, hit.patch.newest, hit.patch.state) == (1, 3, "superseded")
    assert (hit.patch.series_id, hit.patch.deciding_id) == ("limit-1@bay", "limit-2@bay")
    assert hit.patch.commits == (bay.limit,)
    assert all(hit.patch is None for hit in bay.search("from:bo").hits)


@pytest.mark.parametrize("order", ["", " sort:date", " sort:oldest"])
@pytest.mark.parametrize("mode", MODES)
def test_versions_in_other_threads_are_one_hit(bay: Bay, mode: str, order: str) -> None:
    query = f"hawser limit{order}"
    hits = bay.search(query, mode=mode).hits
    shown = {hit.message_id.partition("@")[0]: hit for hit in hits}
    assert "limit-2" in shown
    assert not {"limit-1", "limit-3"} & {*shown}
    assert {*shown["limit-2"].other_versions} == {"limit-1@bay", "limit-3@bay"}
    alone = bay.find(query, mode=mode)
    assert {"limit-1", "limit-2", "limit-3"} <= {*alone}


@pytest.mark.parametrize(
    ("query", "standing", "better"),
    [
        ("One hawser must", "limit-2", "limit-1@bay"),
        ("whoever pulls asks for the hawser", "limit-2", None),
        ("As Bo says, limit and strain are two", "limit-2", "limit-3@bay"),
        ("Oil is cheap, wicks burn", "lamp-2", "lamp-1@bay"),
        ("hawser sort:date", "limit-2", None),
    ],
)
def test_hit_leads_to_the_version_that_matches_better(
    bay: Bay, query: str, standing: str, better: str | None
) -> None:
    hits = bay.search(query, mode="fulltext").hits
    (hit,) = (one for one in hits if one.message_id == f"{standing}@bay")
    assert hit.best_version == better
    assert better is None or hit.other_versions[0] == better


@pytest.mark.parametrize("order", ["", " sort:date", " sort:oldest"])
def test_version_outside_the_filter_hides_no_other(bay: Bay, order: str) -> None:
    hits = bay.search(f"hawser limit before:2024-03-04{order}").hits
    assert {hit.message_id for hit in hits} >= {"limit-1@bay"}
    hits = bay.search(f"hawser limit after:2024-03-06{order}").hits
    assert "limit-3@bay" in {hit.message_id for hit in hits}


@pytest.mark.parametrize("order", ["", " sort:date", " sort:oldest"])
@pytest.mark.parametrize("query", ["is:patch or from:bo", "hawser", "limit birds lamp"])
def test_folded_rows_are_the_same_on_pages_of_any_size(bay: Bay, query: str, order: str) -> None:
    whole = bay.rows(query + order)
    for size in (1, 2, 3):
        parts: list[list[str]] = []
        after = None
        while len(parts) < len(whole) + size:
            answer = bay.search(query + order, limit=size, after_row=after)
            found = [[one.partition("@")[0] for one in row.best] for row in answer.conversations]
            parts += found
            after = answer.next_row
            if after is None:
                break
        assert parts == whole


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "first"),
    [
        (LIMIT, "limit-2"),
        (f"Re: {LIMIT}\n", "limit-2"),
        (f"[PATCH] {LIMIT.upper()}", "limit-2"),
        (f"[PATCH v3] {LIMIT}", "limit-3"),
        (f"Re: [PATCH v2] {LIMIT}", "limit-2"),
        (LAMP, "lamp-2"),
        (f"{LAMP}\n", "lamp-2"),
        (GULLS, "gulls"),
        (EDITED, "gulls"),
        (f"[PATCH 1/2] {EDITED}", "gulls"),
        (f"{EDITED} is:open", None),
    ],
)
def test_subject_finds_the_version_that_was_applied(
    bay: Bay, query: str, first: str | None, mode: str
) -> None:
    found = bay.find(query, mode=mode)
    assert (found[0] if found else None) == first
    rows = bay.rows(query, mode=mode)
    assert (rows[0][0] if rows else None) == first


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", [
    "file:deck/winch.c", "file:WINCH", 'file:"deck/"', "file:winch.c slack", "file:winch sort:date",
    "file:winch or file:anchor", "deck/winch.c", "Winch.c", "a/deck/winch.c", "./deck/winch.c:7",
    "winch_turn", "winch_turn()", "deck/winch.c winch_turn",
])  # fmt: skip
def test_name_finds_the_mail_that_changed_it(bay: Bay, query: str, mode: str) -> None:
    for names_only in (False, True):
        assert "drum" in bay.find(query, mode=mode, names_only=names_only)
    (hit,) = (one for one in bay.search(query, mode=mode).hits if one.message_id == "drum@bay")
    changed = "winch_turn()" if query.startswith("winch_turn") else "deck/winch.c"
    assert hit.why.commits == (f"commit {bay.winch[:12]} changes {changed}",)
    assert [*hit.why.reasons()][-1] == hit.why.commits[0]


@pytest.mark.parametrize("query", [
    "file:turn", "file:winch.c -from:bo", "file:winch is:patch", "-file:winch slack barrel",
    "winch_turned", "inch.c", "winch_turn gulls.c", "winch_turn from:ann",
    '"winch_turn" file:winch',
])  # fmt: skip
def test_name_of_another_change_does_not_find_the_mail(bay: Bay, query: str) -> None:
    assert "drum" not in bay.find(query, mode="fulltext")


def test_best_hits_by_name_precede_those_by_commit(bay: Bay) -> None:
    assert bay.find("limit", mode="fulltext")[0] == "words"
    shown = {hit.message_id: hit.why.commits for hit in bay.search("hawser.c").hits}
    assert shown["limit-2@bay"] == (f"commit {bay.limit[:12]} changes hawser.c",)


def test_contested_mail_led_to_no_commit(bay: Bay) -> None:
    connection = bay.searcher.retriever.connection
    with connection.transaction(force_rollback=True):
        connection.execute(
            "insert into contested_texts (message_id, list, month, variant, place)"
            " select message_id, list, month, n, n + 1 from messages, generate_series(0, 1) n"
            " where message_id = 'drum@bay'"
        )
        assert not {*bay.find("file:winch"), *bay.find("winch_turn", mode="fulltext")} & {"drum"}


def _columns(connection: psycopg.Connection) -> str:
    """Return the columns of messages that are copied to another list."""
    names = read_value(
        connection,
        "select string_agg(attname, ', ') from pg_attribute where attrelid = 'messages'::regclass"
        " and attnum > 0 and attgenerated = '' and attname <> 'list'",
    )
    return str(names)


@pytest.mark.parametrize("shown", ["*", BAY, "cove", ""])
@pytest.mark.parametrize("change", [
    "delete from commit_links", "delete from commits where subject like 'hawser%'",
    "update commits set list = 'cove' where subject like 'hawser%'",
    "delete from messages where message_id = 'limit-2@bay'",
    "delete from messages where message_id = 'lamp-2@bay'",
    "update patch_series set state = 'rejected', reason_id = 'talk@bay' where state = 'open'",
    "update patch_series set series_id = 'lamp-2@bay' where series_id = 'lamp-1@bay'",
    "delete from patch_series where message_id = 'limit-3@bay'", "update messages set list = list",
])  # fmt: skip
def test_stored_states_follow_each_change(bay: Bay, change: str, shown: str) -> None:
    connection = bay.searcher.retriever.connection
    with connection.transaction(force_rollback=True):
        columns = _columns(connection)
        connection.execute(
            f"insert into messages (list, {columns}) select 'cove', {columns} from messages"
            " where message_id in ('gulls@bay', 'limit-3@bay', 'talk@bay')"
        )
        connection.execute(change)
        connection.execute("select set_config('mail_assets.lists', %s, true)", [shown])
        differing = connection.execute(
            """
            with made as (
                select f.state, f.message_id
                  from find_patch_states(
                           array(select series_id from patch_series),
                           case when hides_lists() then shown_lists() end) f)
            (select * from made except select * from shown_patch_states)
            union all
            (select * from shown_patch_states except select * from made)"""
        ).fetchall()
        assert differing == []


#: Conditions on the mail of the bay, each with the messages that meet it.
ALL = {"limit-1", "limit-2", "limit-3", "lamp-1", "lamp-2", "gulls", "talk", "drum", "words"}
CONDITIONS = {
    "is:patch": {"limit-1", "limit-2", "limit-3", "lamp-1", "lamp-2", "gulls"},
    "is:applied": {"limit-2", "gulls"},
    "is:open": {"lamp-2"},
    "version:latest": {"limit-2", "lamp-2", "gulls"},
    "commit:{limit}": {"limit-1", "limit-2", "limit-3"},
    "file:winch": {"drum"},
    "from:bo": {"talk", "drum", "words"},
    "before:2024-03-06": {"limit-1", "limit-2", "lamp-1", "talk"},
    '"the limit"': {"limit-1", "limit-2", "limit-3", "words", "talk"},
    "subject:lamp": {"lamp-1", "lamp-2"},
}
SHAPES = {
    "{} {}": lambda one, other: one & other,
    "{} or {}": lambda one, other: one | other,
    "{} -{}": lambda one, other: one - other,
    "-{} {}": lambda one, other: other - one,
    "-({} or {})": lambda one, other: ALL - one - other,
}
#: Words and orders for these; each is asked with another part of the pairs.
ENDS = ("sort:date", "sort:oldest", "sort:oldest group:message", "the")


def _page_through(bay: Bay, query: str, size: int) -> list[Response]:
    pages = [bay.search(query, limit=size)]
    while (after := pages[-1].next_row) and len(pages) < 2 * len(ALL):
        pages.append(bay.search(query, limit=size, after_row=after))
    assert pages[-1].next_row is None, query
    return pages


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(len(ENDS)))
def test_hits_and_totals_are_those_of_the_conditions(bay: Bay, shape: str, number: int) -> None:
    rest = ENDS[number]
    for one, other in [*combinations(CONDITIONS, 2)][number :: len(ENDS)]:
        query = f"{shape.format(one, other)} {rest}".replace("{limit}", bay.limit)
        wanted = SHAPES[shape](CONDITIONS[one], CONDITIONS[other])
        pages = _page_through(bay, query, 2)
        shown = [hit.message_id for page in pages for hit in page.hits]
        assert len(shown) == len({*shown}), query
        found = {*shown, *(id for page in pages for row in page.conversations for id in row.others)}
        found.update(
            id for page in pages for hit in page.hits for id in (*hit.copies, *hit.other_versions)
        )
        names = {id.partition("@")[0] for id in found}
        assert names == wanted if rest != "the" else names <= wanted, query
        facets = bay.search(query, facets=True).facets
        assert facets
        assert (facets.total, facets.at_least) == (len(wanted), False) or rest == "the", query
