"""Local models: same text, same bits; one encoder at a time; providers agree with the CPU."""

import logging
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding.local_encoder import (
    LocalEncoder,
    ProviderError,
    check_agreement,
    encoder_lock,
    open_local_encoder,
    open_session,
)
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.models import (
    ALL_MINILM_L6_V2,
    GRAPH_PRECISIONS,
    PRECISIONS,
    PROVIDERS,
    check_provider,
)
from mail_assets.encoding.static_encoder import StaticEncoder, open_static_encoder
from mail_assets_tests.encoding.bert import TINY, build, random_weights
from mail_assets_tests.waits import LONG, is_locked

NAME = ALL_MINILM_L6_V2.name
LIMIT = ALL_MINILM_L6_V2.max_tokens - 2  # next to [CLS] and [SEP]

# In pairs of two ways to say a thing.
TEXTS = [
    "How do I stop autovacuum from blocking my ALTER TABLE?",
    "The vacuum worker holds a lock and my schema change waits for it.",
    "The planner chooses a sequential scan although there is an index.",
    "Why a sequential scan, and no use of the index that I made?",
    "initdb fails with: could not create shared memory segment",
    "FATAL:  could not create shared memory segment: No space left on device",
    "I propose to move the weekly meeting to Thursday.",
    "Could we hold our weekly call on Thursdays instead?",
    "The release notes misspell the name of the new function.",
    "There is a typo in a function name in the notes for this release.",
    "select count(*) from pg_stat_activity;\n count \n-------\n    17\n(1 row)",
    "Counting the sessions in pg_stat_activity gives 17.",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="module")
def encoders(cache: Path) -> Mapping[str, LocalEncoder]:
    return {
        precision: open_local_encoder(NAME, precision, cache, threads=3)
        for precision in GRAPH_PRECISIONS
    }


@pytest.fixture(scope="module", params=PRECISIONS)
def any_encoder(
    request: pytest.FixtureRequest, encoders: Mapping[str, LocalEncoder], cache: Path
) -> LocalEncoder | StaticEncoder:
    """An encoder of each precision, the static one too."""
    return encoders.get(request.param) or open_static_encoder(NAME, cache)


@pytest.fixture(scope="module")
def encoder(encoders: Mapping[str, LocalEncoder]) -> LocalEncoder:
    return encoders["int8"]


def test_vector_depends_on_its_text_alone(any_encoder: LocalEncoder | StaticEncoder) -> None:
    alone = {text: any_encoder.encode_documents([text])[0].tobytes() for text in TEXTS}

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from(TEXTS), max_size=8))
    def check(texts: list[str]) -> None:
        vectors = any_encoder.encode_documents(texts)
        assert vectors.shape == (len(texts), 384)
        assert [vector.tobytes() for vector in vectors] == [alone[text] for text in texts]

    check()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_number_of_threads_changes_no_bit(threads: int, encoder: LocalEncoder, cache: Path) -> None:
    other = open_local_encoder(NAME, "int8", cache, threads=threads)
    expected, found = encoder.encode_documents(TEXTS), other.encode_documents(TEXTS)
    assert found.tobytes() == expected.tobytes()


def test_any_text_has_a_vector_of_length_one(any_encoder: LocalEncoder | StaticEncoder) -> None:
    @settings(max_examples=100)
    @given(st.text(max_size=300))
    def check(text: str) -> None:
        vectors = any_encoder.encode_documents([text])
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors[0]), 1, atol=1e-5)

    check()


@pytest.mark.parametrize("precision", GRAPH_PRECISIONS)
def test_paraphrases_are_nearest(precision: str, encoders: Mapping[str, LocalEncoder]) -> None:
    vectors = encoders[precision].encode_documents(TEXTS)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert cosines.argmax(axis=1).tolist() == [index ^ 1 for index in range(len(TEXTS))]


def test_queries_equal_unprefixed_documents(any_encoder: LocalEncoder | StaticEncoder) -> None:
    for text in TEXTS:
        query = any_encoder.encode_query(text)
        assert query.tobytes() == any_encoder.encode_documents([text])[0].tobytes()


def test_prefixes_are_put_before_the_text(encoder: LocalEncoder, cache: Path) -> None:
    model = replace(ALL_MINILM_L6_V2, query_prefix="query: ", document_prefix="passage: ")
    prefixed = LocalEncoder(model, "int8", prepare_model(model, "int8", cache), threads=1)
    query, document = prefixed.encode_query("wal"), prefixed.encode_documents(["wal"])[0]
    assert query.tobytes() == encoder.encode_query("query: wal").tobytes()
    assert document.tobytes() == encoder.encode_query("passage: wal").tobytes()


def test_text_is_cut_at_the_limit_and_counted(cache: Path) -> None:
    encoder = open_local_encoder(NAME, "int8", cache, threads=2)
    fits = "word " * LIMIT
    expected = encoder.encode_documents([fits])[0]
    assert encoder.truncated == 0
    found = encoder.encode_documents([fits, fits + "tail", fits + "another tail " * 900])
    assert encoder.truncated == 2
    assert [vector.tobytes() for vector in found] == [expected.tobytes()] * 3
    assert encoder.encode_query(fits + "tail").tobytes() == expected.tobytes()
    assert encoder.truncated == 3


def test_cut_is_logged(encoder: LocalEncoder, caplog: pytest.LogCaptureFixture) -> None:
    encoder.encode_documents(["short", "word " * 2000])
    assert caplog.messages == [f"1 of 2 texts cut to {LIMIT + 2} tokens"]


def test_fewer_than_one_thread_is_refused(cache: Path) -> None:
    with pytest.raises(ValueError, match="at least 1, found 0"):
        open_local_encoder(NAME, "int8", cache, threads=0)


HOLD = """
import sys
from pathlib import Path
from mail_assets.encoding.local_encoder import encoder_lock

with encoder_lock(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""


def fail() -> None:
    raise AssertionError("there is nobody to wait for")


def test_others_wait_for_the_lock_and_report_it(tmp_path: Path) -> None:
    waits, entered = threading.Event(), threading.Event()

    def encode() -> None:
        with encoder_lock(tmp_path, waits.set):
            entered.set()

    other = threading.Thread(target=encode)
    with encoder_lock(tmp_path, fail):
        assert is_locked(tmp_path)
        other.start()
        assert waits.wait(LONG)
        assert not entered.is_set()
    other.join(LONG)
    assert entered.is_set()
    assert not is_locked(tmp_path)


def test_error_frees_the_lock(tmp_path: Path) -> None:
    try:
        with encoder_lock(tmp_path, fail):
            raise MemoryError
    except MemoryError:
        pass
    assert not is_locked(tmp_path)


def test_killed_process_frees_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert is_locked(tmp_path)
        holder.kill()
        holder.wait()
        assert not is_locked(tmp_path)


def test_lock_makes_a_folder_and_needs_no_write_access(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "new"
    with encoder_lock(folder, fail):
        assert is_locked(folder)
    folder.chmod(0o555)
    with encoder_lock(folder, fail):
        assert is_locked(folder)
        assert [*folder.iterdir()] == []


NAMES = {"cuda": "CUDAExecutionProvider", "openvino": "OpenVINOExecutionProvider"}
MISSING = [name for name, known in NAMES.items() if known not in ort.get_available_providers()]
PRESENT = [name for name in PROVIDERS if name not in MISSING]


def model(folder: Path, precision: str = "fp32", seed: int = 0) -> Path:
    path = folder / f"{precision}-{seed}.onnx"
    built = build(TINY, random_weights(TINY, seed), "mean", precision)
    path.write_bytes(built.SerializeToString())
    return path


def session(path: Path) -> ort.InferenceSession:
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("provider", MISSING)
def test_missing_provider_is_refused_with_the_remedy(provider: str, tmp_path: Path) -> None:
    with pytest.raises(ProviderError) as refusal:
        open_session(model(tmp_path), provider, 20)
    for part in (
        f"MAIL_PROVIDER={provider}",
        NAMES[provider],
        "CPUExecutionProvider",
        "MAIL_PROVIDER=cpu",
    ):
        assert part in str(refusal.value)


@pytest.mark.parametrize("provider", PRESENT)
def test_provider_is_logged_and_gives_the_cpus_vectors(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, ids = model(tmp_path), np.array([[1, 7, 3, 49, 0, 7]])
    with caplog.at_level(logging.INFO):
        (found,) = open_session(path, provider, 20).run(None, {"input_ids": ids})
    (expected,) = session(path).run(None, {"input_ids": ids})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert NAMES.get(provider, "CPUExecutionProvider") in caplog.text


def test_vectors_other_than_the_cpus_are_refused(tmp_path: Path) -> None:
    same, other = session(model(tmp_path)), session(model(tmp_path, seed=1))
    coarse = session(model(tmp_path, "int8"))
    check_agreement("cuda", same, same, 20)
    for wrong in (other, coarse):
        with pytest.raises(ProviderError, match=r"MAIL_PROVIDER=cuda.*differ from the CPU's"):
            check_agreement("cuda", wrong, same, 20)


@pytest.mark.parametrize("provider", NAMES)
def test_int8_is_the_cpus_alone(provider: str) -> None:
    check_provider("cpu", "int8")
    check_provider(provider, "fp32")
    with pytest.raises(ValueError, match="computes precision fp32 only, not int8"):
        check_provider(provider, "int8")


def test_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gpu'.*cpu, cuda, openvino"):
        check_provider("gpu", "fp32")
