"""Files of queries and judgements are read, or refused with the wrong line."""

from pathlib import Path

import pytest

from mail_assets.evaluation.judged import (
    NOT_ARCHIVED,
    NOT_JUDGED,
    ONLY_CITING,
    read_judgements,
    read_queries,
    read_set,
)
from mail_assets.search.language.request import RequestError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "qrels.tsv"


@pytest.mark.parametrize("text", [
    "q\t<a@b>\t1\nq\tc@d\t2\n",
    "query-id\tmessage-id\tscore\r\nq\t<a@b>\t1\r\n\r\nq\tc@d\t2",
    "\ufeffq\ta@b\t1\nq\t c@d \t2\nq\te@f\t0\n",
])  # fmt: skip
def test_judgements_are_read_in_every_spelling(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="")
    assert read_judgements(file) == {"q": {"a@b": 1, "c@d": 2}}


@pytest.mark.parametrize(("text", "said"), [
    ("q\ta\t1\nq a 1\n", "line 2: must be query id"),
    ("q\ta\thigh\n", "line 1: "),
    ("q\t0\ta\t1\n", "line 1: "),
    ("q\ta\t1\n\nquery-id\tmessage-id\tscore\n", "line 3: "),
    ("q\ta\t1\nr\ta\t0\nq\t<a>\t0\n", "line 3: <a> has the grade 0 for query q, and 1 on"),
])  # fmt: skip
def test_wrong_judgement_is_named_by_its_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(RequestError, match=said):
        read_judgements(file)


def test_file_that_is_not_utf8_is_refused(file: Path) -> None:
    file.write_bytes(b"q\t\xe9\t1\n")
    with pytest.raises(RequestError, match="is not UTF-8"):
        read_judgements(file)


def test_queries_with_few_relevant_messages_are_left_out(file: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "b", "text": "two"}\n{"_id": "a", "text": "one"}\n')
    file.write_text("a\tx\t1\nb\tx\t1\nb\ty\t1\nc\tz\t1\n")
    assert [one.query_id for one in read_set(tmp_path, 1).queries] == ["b", "a"]
    found = read_set(tmp_path, 2)
    assert [one.query_id for one in found.queries] == ["b"]
    assert found.left_out == {"fewer than 2 relevant messages": 1}
    with pytest.raises(RequestError, match="the ids must be the same in both"):
        read_set(tmp_path, 3)


@pytest.mark.parametrize(
    ("relevant", "asked"),
    [
        ([1, 1], ["0", "1"]),
        ([1, 2, 1, 12], ["0", "1", "2", "3"]),  # most have fewer than three
        ([3, 1, 8, 5], ["0", "2", "3"]),
        ([2, 3], ["1"]),
    ],
)
def test_known_item_set_keeps_all_queries(
    file: Path, tmp_path: Path, relevant: list[int], asked: list[str]
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(f'{{"_id": "{n}", "text": "one"}}\n' for n in range(len(relevant))))
    rows = [f"{n}\tm{i}\t1\n" for n, most in enumerate(relevant) for i in range(most)]
    file.write_text("".join(rows))
    assert [one.query_id for one in read_set(tmp_path).queries] == asked


def test_queries_that_no_search_could_answer_are_counted(file: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two", "citing": ["y", "z"]}\n'
        '{"_id": "c", "text": "three"}\n{"_id": "d", "text": "four"}\n'
    )
    file.write_text("a\tx\t1\nb\ty\t1\nc\tgone\t1\nd\tx\t0\n")
    found = read_set(tmp_path).leave_out_unfindable({"x", "y"})
    assert [one.query_id for one in found.queries] == ["a"]
    assert found.left_out == {NOT_ARCHIVED: 1, ONLY_CITING: 1, NOT_JUDGED: 1}


def test_repeated_judgement_is_allowed(file: Path) -> None:
    file.write_text("q\ta\t1\nq\t<a>\t1\nq\tb\t0\nq\tb\t0\n")
    assert read_judgements(file) == {"q": {"a": 1}}


@pytest.mark.parametrize(("second", "said"), [
    ('{"_id": "a", "text": "two"}', "line 3: line 1 has the same id 'a'"),
    ('{"_id": "b", "text": " "}', "line 3: the query is empty"),
])  # fmt: skip
def test_wrong_query_is_named_by_its_line(
    file: Path, tmp_path: Path, second: str, said: str
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(f'{{"_id": "a", "text": "one"}}\n\n{second}\n')
    file.write_text("a\tx\t1\nb\tx\t1\n")
    with pytest.raises(RequestError, match=said):
        read_set(tmp_path)


def test_citing_messages_are_read(file: Path) -> None:
    file.write_text(
        '{"_id": "a", "text": "one", "citing": "<x@y>"}\n'
        '{"_id": "b", "text": "two", "citing": ["x@y", "z@y"]}\n'
        '{"_id": "c", "text": "three"}\n'
    )
    assert [one.citing for _, one in read_queries(file)] == [("x@y",), ("x@y", "z@y"), ()]
    for wrong in ("7", '["x", 7]', "null"):
        file.write_text(f'{{"_id": "a", "text": "one", "citing": {wrong}}}\n')
        with pytest.raises(RequestError, match='line 1: "citing" must be'):
            [*read_queries(file)]
