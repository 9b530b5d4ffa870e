"""A search from within a thread adds its subject to the question, and leaves it out."""

import psycopg
import pytest

from mail_assets.search.language.request import MODES, MissingMessageError
from mail_assets.search.response import Reading
from mail_assets_tests.sample_corpus import QUERY, ROOT, Search, ids


@pytest.fixture(scope="module")
def thread(connection: psycopg.Connection) -> tuple[str, str, list[str]]:
    """The thread of ROOT: its id, subject and messages."""
    rows = connection.execute(
        "select t.thread_id, t.message_id, m.subject_base from threads o"
        " join threads t using (thread_id) cross join lateral first_copy(t.message_id) m"
        " where o.message_id = %s order by t.position",
        [ROOT],
    ).fetchall()
    return rows[0][0], rows[0][2], [row[1] for row in rows]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", ["conversation", "message"])
def test_thread_at_hand_is_left_out(
    search: Search, thread: tuple[str, str, list[str]], mode: str, group: str
) -> None:
    thread_id, subject, messages = thread
    alone = search(QUERY, mode=mode, limit=50, group=group)
    found = search(QUERY, mode=mode, limit=50, group=group, near=ROOT)
    assert {*ids(alone)} & {*messages}
    assert not {*ids(found)} & {*messages}
    assert found.near == Reading(ROOT, thread_id, subject)
    assert all(one.thread_id != thread_id for one in found.conversations)


def test_subject_at_hand_ranks_and_is_not_marked(
    search: Search, thread: tuple[str, str, list[str]]
) -> None:
    asked = search("worker", near=ROOT, explain=True, limit=20)
    both = search(f"worker {thread[1]} -thread:{ROOT}", explain=True, limit=20)
    assert asked.explain is not None
    assert both.explain is not None
    assert ids(asked) == ids(both)
    assert [one["lexeme"] for one in asked.explain["terms"]] == [
        one["lexeme"] for one in both.explain["terms"]
    ]
    words = {word.lower() for hit in asked.hits for word in hit.why.words}
    assert words <= {"work", "worker", "workers"} != set()
    assert asked.explain["query"].endswith(f" · reading: {thread[1]}")


@pytest.mark.parametrize("near", ["{0}", "<{0}>", "{1}", " {2} "])
def test_any_id_of_a_thread_leads_to_it(
    search: Search, thread: tuple[str, str, list[str]], near: str
) -> None:
    thread_id, _, messages = thread
    wanted = ids(search(QUERY, near=ROOT))
    given = near.format(ROOT, thread_id, messages[-1])
    assert ids(search(QUERY, near=given)) == wanted
    assert ids(search(f'{QUERY} near:"{given}"')) == wanted


def test_permalink_keeps_the_thread_at_hand(search: Search) -> None:
    found = search(QUERY, near=f"<{ROOT}>", limit=4)
    assert f"near:{ROOT}" in found.permalink
    again = search(found.permalink)
    assert (ids(again), again.near) == (ids(found), found.near)


def test_list_by_date_leaves_out_the_thread_at_hand(
    search: Search, thread: tuple[str, str, list[str]]
) -> None:
    whole = search("list:harbor-dev", limit=100, group="message")
    found = search("list:harbor-dev", limit=100, group="message", near=ROOT)
    assert ids(found) == [id for id in ids(whole) if id not in thread[2]]


def test_pasted_id_is_found_in_the_thread_at_hand(search: Search) -> None:
    assert ids(search(f"<{ROOT}>", near=ROOT)) == [ROOT]


def test_text_in_no_thread_is_left_out_by_its_id(search: Search) -> None:
    found = search("texto", limit=50, near="names@example.es", mode="semantic")
    assert "names@example.es" not in ids(found)


@pytest.mark.parametrize("near", ["nobody@example.org", "'; drop table x --@y", "a" * 500])
def test_unknown_id_at_hand_is_one_clear_line(search: Search, near: str) -> None:
    with pytest.raises(MissingMessageError, match=r"\Anear: no message or thread has the id ['\"]"):
        search(QUERY, near=near)


def test_phrases_give_way_from_within_a_thread(search: Search) -> None:
    found = search('lease "zzgarble nowhere"', near=ROOT)
    assert found.without_quotes == ("zzgarble nowhere",)
    assert found.hits


@pytest.mark.parametrize("mode", MODES)
def test_pages_from_within_a_thread_follow(search: Search, mode: str) -> None:
    whole = search(QUERY, mode=mode, near=ROOT, limit=12, facets=True)
    pages = [
        search(QUERY, mode=mode, near=ROOT, limit=4, offset=at, facets=True) for at in (0, 4, 8)
    ]
    assert [i for page in pages for i in ids(page)] == ids(whole)
    assert {page.facets and page.facets.total for page in pages} == {
        whole.facets and whole.facets.total
    }
