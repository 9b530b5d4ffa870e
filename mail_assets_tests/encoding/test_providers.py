"""A provider computes where it was asked to, the CPU's vectors, or says why it cannot."""

import logging
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from mail_assets.encoding.local_encoder import ProviderError, check_agreement, open_session
from mail_assets.encoding.model_build import build_graph
from mail_assets.encoding.models import PROVIDERS, check_provider
from mail_assets_tests.encoding.bert import TINY, random_weights

NAMES = {"cuda": "CUDAExecutionProvider", "openvino": "OpenVINOExecutionProvider"}
MISSING = [name for name, known in NAMES.items() if known not in ort.get_available_providers()]
PRESENT = [name for name in PROVIDERS if name not in MISSING]


def model(folder: Path, precision: str = "fp32", seed: int = 0) -> Path:
    path = folder / f"{precision}-{seed}.onnx"
    built = build_graph(TINY, random_weights(TINY, seed), "mean", precision)
    path.write_bytes(built.SerializeToString())
    return path


def session(path: Path) -> ort.InferenceSession:
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("provider", MISSING)
def test_a_provider_that_is_not_installed_is_refused_with_the_remedy(
    provider: str, tmp_path: Path
) -> None:
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
def test_where_it_computes_is_logged_and_makes_no_difference(
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
        with pytest.raises(ProviderError, match=r"MAIL_PROVIDER=cuda.*not those of the CPU"):
            check_agreement("cuda", wrong, same, 20)


@pytest.mark.parametrize("provider", NAMES)
def test_int8_is_the_cpus_alone(provider: str) -> None:
    check_provider("cpu", "int8")
    check_provider(provider, "fp32")
    with pytest.raises(ValueError, match="computes precision fp32 only, not int8"):
        check_provider(provider, "int8")


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gpu'.*cpu, cuda, openvino"):
        check_provider("gpu", "fp32")
