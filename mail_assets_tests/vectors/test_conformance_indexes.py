"""Every backend creates, lists, describes, keeps and drops indexes alike."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from mail_assets.vectors.index import IndexSpec, MissingIndexError, VectorError, VectorIndex
from mail_assets_tests.vectors.processes import Place
from mail_assets_tests.vectors.samples import POPULATION, SPEC, unit, vector


def test_a_reopened_bucket_holds_what_was_put(place: Place, index: VectorIndex) -> None:
    index.put([vector(1, list="a", month=202401)])
    fields = dict(reversed(list(SPEC.fields.items())))
    again = place.open().index(replace(SPEC, fields=fields))
    again.ensure()
    again.put([vector(2, list="b", month=202402), vector(1, list="c", month=202403)])
    assert {key: stored.metadata for key, stored in index.get(index.keys()).items()} == {
        "key-0001": {"list": "c", "month": 202403},
        "key-0002": {"list": "b", "month": 202402},
    }


@pytest.mark.parametrize(
    "other",
    [replace(SPEC, dimension=16), replace(SPEC, non_filterable=("title",))],
    ids=["dimension", "non_filterable"],
)
def test_ensure_refuses_an_index_made_for_another_spec(
    place: Place, index: VectorIndex, other: IndexSpec
) -> None:
    index.put([vector(1)])
    with pytest.raises(VectorError, match=r"chunks-v1\.minilm.*exists as .*, wanted .*drop"):
        place.open().index(other).ensure()
    assert index.count() == 1


def test_indexes_of_a_bucket_are_listed_and_separate(place: Place, index: VectorIndex) -> None:
    other = place.open().index(replace(SPEC, name="another"))
    other.ensure()
    other.put([vector(7)])
    assert place.open().indexes() == ["another", "chunks-v1.minilm"]
    assert index.count() == 0
    other.drop()
    assert place.open().indexes() == ["chunks-v1.minilm"]


def test_an_empty_bucket_lists_no_indexes(place: Place) -> None:
    assert place.open().indexes() == []


def test_dropping_forgets_everything_and_may_be_repeated(index: VectorIndex) -> None:
    index.put([vector(1)])
    index.drop()
    index.drop()
    with pytest.raises(MissingIndexError, match=r"chunks-v1\.minilm.*`mail-assets backfill`"):
        index.count()
    index.ensure()
    assert index.count() == 0


def test_a_missing_index_is_named_by_every_operation(place: Place) -> None:
    missing = place.open().index(SPEC)
    for operation in (
        lambda: missing.put([vector(1)]),
        lambda: missing.delete(["a"]),
        lambda: missing.get(["a"]),
        lambda: missing.query(unit(1), 1),
        lambda: missing.query(unit(1), 1, {"list": "a"}),
        lambda: list(missing.keys()),
        missing.count,
        missing.describe,
    ):
        with pytest.raises(MissingIndexError, match=r"chunks-v1\.minilm.*does not exist"):
            operation()


def test_a_description_names_backend_and_shape(index: VectorIndex) -> None:
    facts = index.describe()
    assert facts["backend"] in ("lance", "s3vectors", "pgvector")
    assert (facts["index"], facts["dimension"], facts["metric"]) == (SPEC.name, 8, "cosine")
    assert facts["search"] in ("exact", "service")


def test_a_description_has_the_stored_dimension(place: Place, index: VectorIndex) -> None:
    index.put([vector(1)])
    assert place.open().index(replace(SPEC, dimension=16)).describe()["dimension"] == 8


def test_maintaining_changes_no_result(index: VectorIndex) -> None:
    index.maintain()
    index.put(POPULATION)
    before = index.query(unit(1), 20, {"month": {"$gte": 0}})
    index.maintain()
    assert index.query(unit(1), 20, {"month": {"$gte": 0}}) == before
    assert index.count() == len(POPULATION)


def test_messages_hold_no_credentials(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"hidden-{secrets.token_hex(4)}"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    dsn = f"postgresql://someone:{secret}@127.0.0.1:1/mail" if place.dsn else None
    other = replace(place, environ={"SUPABASE_SERVICE_KEY": secret}, dsn=dsn)
    with pytest.raises(VectorError) as caught:
        other.open().index(SPEC).count()
    assert secret not in repr(caught.value)
    assert secret not in repr(caught.value.__cause__)
