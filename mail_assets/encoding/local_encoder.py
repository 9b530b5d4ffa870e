"""Encode texts with a local model as unit vectors, on this machine.

A text is always encoded alone, for the reason in model_build.py. On the CPU, the same text always
gives the same bits. Texts are encoded in parallel: threads share one session that is itself
single-threaded, which has 1.5 times the throughput of one caller with two threads in the session.

ONNX Runtime computes on the CPU unless another provider is set. The fingerprint does not name the
provider, so providers must agree. In int8 they do not: the cosine to the CPU's vector is 0.98 to
0.994 with OpenVINO and 0.9994 with CUDA, and CUDA is slower than the CPU. So int8 runs on the CPU
only. In fp32 providers agree up to rounding, which is checked when a session opens.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from mail_assets.encoding.checkpoint import load_tokenizer
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.models import LocalModel, check_provider, find_local_model
from mail_assets.errors import MailAssetsError
from mail_assets.files import make_private_folder
from mail_assets.processes.machine import count_physical_cores, unpin_thread

logger = logging.getLogger(__name__)

CPU_PROVIDER = "CPUExecutionProvider"

#: Provider -> ONNX Runtime's name and options, and the package that contains it.
_PROVIDERS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "cpu": (CPU_PROVIDER, {}, "onnxruntime"),
    # TF32, on by default, keeps 10 bits of the mantissa.
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0"}, "onnxruntime-gpu"),
    # Without this, processors with AMX compute in bfloat16.
    "openvino": (
        "OpenVINOExecutionProvider",
        {"device_type": "CPU", "precision": "ACCURACY", "num_of_threads": "1"},
        "onnxruntime-openvino",
    ),
}

#: Largest 1 - cosine to the CPU's vector that counts as rounding.
MAX_DISTANCE = 1e-5

Vectors = npt.NDArray[np.float32]


class ProviderError(MailAssetsError):
    """A provider is missing in this ONNX Runtime, does not start, or gives different vectors."""


class LocalEncoder:
    """A loaded model; thread-safe. `graph` is its prepared ONNX file.

    `truncated` counts the encoded texts that were cut to the model's `max_tokens`.
    """

    def __init__(
        self, model: LocalModel, precision: str, graph: Path, threads: int, provider: str = "cpu"
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, found {threads}")
        self.model = model
        self.precision = precision
        self.provider = provider
        self.fingerprint = model.fingerprint(precision)
        self.dimension = model.dimension
        self.tokenizer = load_tokenizer(model)
        self.threads = threads
        self.truncated = 0
        self._lock = threading.Lock()
        self._models = graph.parent
        self._session = open_session(graph, provider, model.max_tokens)

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait for other local encoders of this machine, and block them; see encoder_lock."""
        return encoder_lock(self._models, report_wait)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension), in the order of the texts."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        # Longest first, so that no thread works alone on a long text at the end, and the memory
        # arena is allocated once at its full size. Characters approximate tokens well enough.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True)

        def encode(index: int) -> bool:
            vectors[index], cut = self._encode(self.model.document_prefix + texts[index])
            return cut

        # Each text takes milliseconds, so the threads of a pinned search process use all cores.
        with ThreadPoolExecutor(self.threads, "encoder", unpin_thread) as workers:
            # An exception closes the iterator of map, which cancels the waiting texts.
            cuts = sum(workers.map(encode, order))
        self._report_truncated(cuts, len(texts))
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimension,)."""
        vector, cut = self._encode(self.model.query_prefix + text)
        self._report_truncated(int(cut), 1)
        return vector

    def _encode(self, text: str) -> tuple[Vectors, bool]:
        ids = self.tokenizer.encode(text).ids
        limit = self.model.max_tokens
        cut = len(ids) > limit
        if cut:
            ids = [*ids[: limit - 1], ids[-1]]
        (vectors,) = self._session.run(None, {"input_ids": np.array([ids], np.int64)})
        return np.asarray(vectors[0], np.float32), cut

    def _report_truncated(self, cuts: int, texts: int) -> None:
        if cuts:
            logger.warning("%d of %d texts cut to %d tokens", cuts, texts, self.model.max_tokens)
            with self._lock:
                self.truncated += cuts


def open_local_encoder(
    name: str, precision: str, cache: Path, threads: int | None = None, provider: str = "cpu"
) -> LocalEncoder:
    """Open the encoder of a local model; `cache` has its ONNX file. Default: a thread per core."""
    model = find_local_model(name, cache)
    check_provider(provider, precision)
    graph = prepare_model(model, precision, cache)
    workers = count_physical_cores() if threads is None else threads
    return LocalEncoder(model, precision, graph, workers, provider)


@contextmanager
def encoder_lock(folder: Path, report_wait: Callable[[], object]) -> Iterator[None]:
    """Hold the lock of a model folder, so that one process at a time encodes on this machine.

    Two encoders on the same cores slow each other down. `report_wait` is called before waiting. The
    folder itself is locked, so it may be read-only; it is created if it is missing.

    This is a file lock and not a Dagster pool, for these reasons. A waiting step of the in-process
    executor spins on a core (dagster-io/dagster#20367). The command line and the daemon share the
    lock. A killed process releases it. Machines of a cluster do not wait for each other.
    """
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # frees the lock


def open_session(model: Path, provider: str, length: int) -> ort.InferenceSession:
    """Open a single-threaded session on a provider, and log the provider.

    Providers other than the CPU are tested with one text of `length` tokens: its vector must equal
    the CPU's.

    Raises:
        ProviderError: the provider is missing, does not start, or gives a different vector.
    """
    name, options, package = _PROVIDERS[provider]
    available = ort.get_available_providers()
    if name not in available:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: onnxruntime {ort.__version__} has no {name}, only "
            f"{', '.join(available)}. Install {package} instead of onnxruntime, "
            "or set MAIL_PROVIDER=cpu"
        )
    if provider == "cuda":
        ort.preload_dlls()  # CUDA's libraries from pip packages are not on the search path
    session = _session(model, name, options)
    # ONNX Runtime falls back to the CPU if a provider's own libraries do not load.
    if session.get_providers()[0] != name:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: {name} did not start; see ONNX Runtime's warning above. "
            "Install what is missing, or set MAIL_PROVIDER=cpu"
        )
    if provider != "cpu":
        check_agreement(provider, session, _session(model, CPU_PROVIDER, {}), length)
    logger.info("%s: on %s, onnxruntime %s", model.name, name, ort.__version__)
    return session


def _session(model: Path, name: str, options: Mapping[str, str]) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    # The graph runs nearly as built: extended fusions make it no faster, and one of them
    # (SkipLayerNormalization) makes int8 slower.
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(str(model), settings, providers=[(name, dict(options))])


def check_agreement(
    provider: str, session: ort.InferenceSession, cpu: ort.InferenceSession, length: int
) -> None:
    """Raise ProviderError if the vectors of one text are too far apart."""
    # Any token ids will do; small ones are in every vocabulary.
    ids = {"input_ids": np.arange(length, dtype=np.int64)[None]}
    (found,), (expected,) = session.run(None, ids), cpu.run(None, ids)
    distance = 1 - float(found[0] @ expected[0])
    if not distance <= MAX_DISTANCE:
        raise ProviderError(
            f"MAIL_PROVIDER={provider}: its vectors differ from the CPU's (1 - cosine is "
            f"{distance:.2g}, allowed {MAX_DISTANCE:g}), so one index cannot have both. "
            "Set MAIL_PROVIDER=cpu"
        )
