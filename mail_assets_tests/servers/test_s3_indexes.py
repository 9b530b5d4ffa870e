"""Vectors and words on a real S3: many writers, upkeep, forgetting, a failing connection."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from mail_assets.vectors.index import VectorError, VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import WordIndex, WordsError
from mail_assets.words.open import open_words
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.s3 import BUCKET
from mail_assets_tests.servers.faulty_proxy import ALL, BUSY, FaultyProxy, Trouble, repeat
from mail_assets_tests.vectors.processes import Place, put_the_same_keys, run_together
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors
from mail_assets_tests.words.processes import check_parallel_writers, having, put_for_ever
from mail_assets_tests.words.samples import document, documents

pytestmark = [pytest.mark.servers, pytest.mark.slow]

VECTORS, WORDS = f"lance:s3://{BUCKET}/vectors", f"lance:s3://{BUCKET}/words"
WRITERS = 3


def vectors() -> VectorIndex:
    """Open the index of vectors named in the environment; create it if there is none."""
    index = open_bucket(VECTORS).index(MAIL)
    index.ensure()
    return index


def words() -> WordIndex:
    """Open the index of words named in the environment; create it if there is none."""
    index = open_words(WORDS)
    index.ensure()
    return index


def objects(s3: Any, prefix: str) -> dict[str, bytes]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
    return {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}


def holding(s3: Any, prefix: str, traces: Iterable[bytes]) -> list[str]:
    wanted = [*traces]
    found = objects(s3, prefix).items()
    return [key for key, data in found if any(trace in data for trace in wanted)]


def test_writers_of_the_same_vectors_leave_each_once(s3: Any) -> None:
    index = vectors()
    aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    run_together(put_the_same_keys, [(Place(VECTORS, aws), seed) for seed in range(WRITERS)])
    keys = [*index.keys()]
    assert len(keys) == len({*keys}) == 550
    index.maintain()
    assert sorted(index.keys()) == sorted(keys)


def test_parallel_writers_lose_and_double_nothing(s3: Any) -> None:
    check_parallel_writers(words(), WORDS, WRITERS)


def test_searches_and_upkeep_go_on_while_another_process_writes(s3: Any) -> None:
    index = words()
    index.put(document(200_000 + number, ["before"]) for number in range(50))
    heard, told = FORKS.Pipe(duplex=False)
    process = start_process(put_for_ever, WORDS, told)
    told.close()  # so that a process that ends otherwise ends the waiting
    for _ in range(4):
        heard.recv()
        assert len(having(index, "before")) == 50
        with suppress(WordsError):  # it gives way to writers
            index.maintain()
    process.kill()
    process.join()
    written = sorted(index.keys())
    assert len(written) == len({*written})
    index.maintain()
    assert sorted([*having(index, "before"), *having(index, "written")]) == written


def test_forgetting_leaves_no_old_version(s3: Any) -> None:
    index, stored = vectors(), mail_vectors(clustered(200))
    index.put(stored)
    index.delete([stored[7].key])
    index.maintain()
    assert holding(s3, "vectors/", [stored[7].key.encode()])
    index.maintain(erase=True)
    assert not holding(s3, "vectors/", [stored[7].key.encode(), stored[7].values.tobytes()])
    assert index.count() == 199

    secret, texts = "pterodactylography", words()
    texts.put([*documents(50), document(999, ["before", secret, "after"])])
    texts.maintain()
    parts = [secret[start : start + 8].encode() for start in range(len(secret) - 8)]
    assert holding(s3, "words/", parts)
    texts.delete([document(999, []).key])
    texts.maintain(erase=True)
    assert not holding(s3, "words/", parts)
    assert texts.count() == 50


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_writes_over_a_bad_connection_are_stored_once(proxy: FaultyProxy, seed: int) -> None:
    index, texts = vectors(), words()
    proxy.trouble = Trouble(0.3, ALL, seed)
    values = clustered(300)
    for start in range(0, 300, 50):
        proxy.reset_connections()  # else one undisturbed connection would serve all
        written = [document(number, ["written"]) for number in range(start, start + 50)]
        repeat(partial(index.put, mail_vectors(values[start : start + 50], start)))
        repeat(partial(texts.put, written))
    repeat(index.maintain)
    repeat(texts.maintain)
    stored = index.get(index.keys(), data=True)
    assert len(stored) == index.count() == 300
    for wanted in mail_vectors(values):
        np.testing.assert_array_equal(stored[wanted.key].values, wanted.values)
    keys = sorted(document(number, []).key for number in range(300))
    assert sorted(texts.keys()) == having(texts, "written") == keys
    assert len(proxy.happened) > 1


@pytest.mark.parametrize(("work", "error", "said"), [
    (lambda: vectors().put(mail_vectors(clustered(1))), VectorError, f"{VECTORS}: "),
    (lambda: words().put(documents(1)), WordsError, f"{WORDS}: "),
], ids=["vectors", "words"])  # fmt: skip
def test_outage_is_named_with_index_and_remedy(
    proxy: FaultyProxy, work: Callable[[], object], error: type[Exception], said: str
) -> None:
    proxy.trouble = Trouble(1.0, [BUSY], latest=1)
    with pytest.raises(error, match=f"{said}.*later"):
        work()
