"""Probe an encoder: encode a fixed text, and compare its vector with the first machine's.

The fingerprint of an encoder identifies everything except the machine. Processors with other
instructions round the float32 part of a model differently, which changes vectors by less than
search notices. A larger distance is not rounding, and one index must not have both kinds of
vectors.
"""

import platform
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.errors import MailAssetsError
from mail_assets.tables.encoded_texts import EncoderProbe, read_probe, record_probe

PROBE_TEXT = (
    "PostgreSQL 16.2 on x86_64-pc-linux-gnu: ERROR:  could not serialize access due to concurrent "
    "update\nHow do I make sure that a transaction is tried again?"
)
#: Cosines to the vector of the first machine: below SAME a warning is logged, below USABLE the
#: probe fails.
SAME, USABLE = 0.999, 0.98

Vectors = npt.NDArray[np.float32]


class EncoderProbeError(MailAssetsError):
    """This machine makes other vectors than the first one. Names both, and the remedy."""


class TextEncoder(Protocol):
    """An encoder whose vectors are compared."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that determines a vector, except the machine."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text."""


class Encoder(TextEncoder, Protocol):
    """An encoder as the step encode_chunks uses it."""

    @property
    def dimension(self) -> int:
        """The dimension of its vectors; the fingerprint of a model on a server does not have it."""

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Make other encoders of this machine wait in a block; `report_wait` if this one waits."""


class ProbedEncoder:
    """An encoder that is probed before its first text."""

    def __init__(
        self, encoder: Encoder, connection: psycopg.Connection, log: Callable[[str], None]
    ) -> None:
        self.fingerprint = encoder.fingerprint
        self.wait_turn = encoder.wait_turn
        self.dimension = encoder.dimension
        self._encoder, self._connection, self._log = encoder, connection, log
        self._probed = False

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text."""
        if not self._probed:
            probe_encoder(self._connection, self._encoder, self._log)
            self._probed = True
        return self._encoder.encode_documents(texts)


def probe_encoder(
    connection: psycopg.Connection, encoder: Encoder, log: Callable[[str], None]
) -> None:
    """Compare the vector of a fixed text with that of the first machine that used the encoder.

    Without a record this machine becomes the first.

    Raises:
        EncoderProbeError: the vectors differ by more than rounding.
    """
    here = _measure(encoder)
    _compare(encoder.fingerprint, record_probe(connection, encoder.fingerprint, here), here, log)


def check_encoder(
    connection: psycopg.Connection, encoder: TextEncoder, log: Callable[[str], None]
) -> None:
    """Compare as probe_encoder does, before queries are encoded, and record nothing."""
    first = read_probe(connection, encoder.fingerprint)
    if first is not None:
        _compare(encoder.fingerprint, first, _measure(encoder), log)


def _measure(encoder: TextEncoder) -> EncoderProbe:
    [vector] = encoder.encode_documents([PROBE_TEXT])
    return EncoderProbe(np.asarray(vector, np.float32), describe_machine())


def _compare(
    fingerprint: str, first: EncoderProbe, here: EncoderProbe, log: Callable[[str], None]
) -> None:
    cosine = float(first.vector @ here.vector)
    if cosine >= SAME:
        return
    found = (
        f"encoder {fingerprint}: a fixed text has another vector here ({here.machine}) "
        f"than where its index was begun ({first.machine}): cosine {cosine:.4f}"
    )
    if not cosine >= USABLE:
        raise EncoderProbeError(
            f"{found}, at least {USABLE} are needed. Encode and search on machines like the first, "
            "or build an index that they agree on: MAIL_PRECISION=fp32 mail-assets index fill"
        )
    log(f"{found}; processors round int8 in their own ways, and search does not notice this much")


def describe_machine() -> str:
    """Return the processor, the instructions that int8 depends on, and ONNX Runtime's version."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.is_file() else ""
    named = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = [flag for flag in ("avx2", "avx512_vnni", "avx_vnni", "asimddp") if f" {flag}" in text]
    name = named[1] if named else platform.machine()
    return f"{name}, {' '.join(flags)}, onnxruntime {metadata.version('onnxruntime')}"
