"""Where ONNX Runtime computes a graph: on the CPU, CUDA or OpenVINO, and only where asked.

The fingerprint of an encoder does not name the provider, so providers must agree. int8 they do
not: OpenVINO's rendering of the same graph was at cosine 0.980 to 0.994 from the CPU's (and half
as fast), and CUDA has no such operator and leaves it to the CPU without a word. So int8 is the
CPU's alone (local_model.check_provider). fp32 they do, to rounding (OpenVINO to 3e-7), and each
session of another provider has to show it before it is used.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort

logger = logging.getLogger(__name__)

CPU_PROVIDER = "CPUExecutionProvider"

#: Provider -> ONNX Runtime's name and options, and the package that brings it.
_PROVIDERS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "cpu": (CPU_PROVIDER, {}, "onnxruntime"),
    # TF32, on by default, keeps 10 bits of the mantissa.
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0"}, "onnxruntime-gpu"),
    # Processors with AMX compute in bfloat16 unless told not to.
    "openvino": (
        "OpenVINOExecutionProvider",
        {"device_type": "CPU", "precision": "ACCURACY", "num_of_threads": "1"},
        "onnxruntime-openvino",
    ),
}

#: The largest 1 - cosine to the CPU's vector that passes for rounding.
MAX_DISTANCE = 1e-5


class ProviderError(RuntimeError):
    """A provider that is not in this ONNX Runtime, does not start, or computes something else."""


def open_session(model: Path, provider: str, length: int) -> ort.InferenceSession:
    """A session on that provider, of one thread; logs where it computes.

    Off the CPU it encodes one text of `length` tokens, and is refused where the CPU's vector is
    another. Raises ProviderError, which names the provider and the remedy.
    """
    name, options, package = _PROVIDERS[provider]
    available = ort.get_available_providers()
    if name not in available:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: this onnxruntime {ort.__version__} has no {name}, only "
            f"{', '.join(available)}. Install {package} instead of onnxruntime, "
            "or set MAIL_PROVIDER=cpu"
        )
    session = _session(model, name, options)
    # ONNX Runtime goes on with the CPU where a provider's own libraries do not load.
    if session.get_providers()[0] != name:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: {name} did not start; ONNX Runtime's warning above says "
            "why. Install what it lacks, or set MAIL_PROVIDER=cpu"
        )
    if provider != "cpu":
        check_agreement(provider, session, _session(model, CPU_PROVIDER, {}), length)
    logger.info("%s: on %s, onnxruntime %s", model.name, name, ort.__version__)
    return session


def _session(model: Path, name: str, options: Mapping[str, str]) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    # The graph runs as it was built: the extended fusions bring nothing to it here, and one of
    # them (SkipLayerNormalization) made int8 15 % slower in a graph it matched.
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(str(model), settings, providers=[(name, dict(options))])


def check_agreement(
    provider: str, session: ort.InferenceSession, cpu: ort.InferenceSession, length: int
) -> None:
    """Compare the vectors of one text; ProviderError where they are too far apart.

    Any token ids do, and small ones are in every vocabulary.
    """
    ids = {"input_ids": np.arange(length, dtype=np.int64)[None]}
    (found,), (expected,) = session.run(None, ids), cpu.run(None, ids)
    distance = 1 - float(found[0] @ expected[0])
    if not distance <= MAX_DISTANCE:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: its vectors are not those of the CPU (1 - cosine "
            f"{distance:.2g}, at most {MAX_DISTANCE:g}), so one index cannot hold both. "
            "Set MAIL_PROVIDER=cpu"
        )
