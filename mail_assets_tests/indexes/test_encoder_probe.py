"""A machine whose vectors differ from those of the first is refused before its first text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psycopg
import pytest

from mail_assets.indexes.encoder_probe import (
    PROBE_TEXT,
    EncoderProbeError,
    ProbedEncoder,
    check_encoder,
    describe_machine,
    probe_encoder,
)
from mail_assets_tests.world import Hashing


class Turned(Hashing):
    """An encoder whose vectors are at a cosine from those of the same encoder elsewhere."""

    def __init__(self, models: Path, cosine: float) -> None:
        super().__init__(models)
        self.cosine = cosine

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = super().encode_documents(texts)
        beside = np.roll(vectors, 1, axis=1)
        beside -= (beside * vectors).sum(axis=1, keepdims=True) * vectors
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        turned = self.cosine * vectors + np.sqrt(1 - self.cosine**2) * beside
        return np.asarray(turned, np.float32)


def said(connection: psycopg.Connection, encoder: Hashing) -> list[str]:
    lines: list[str] = []
    probe_encoder(connection, encoder, lines.append)
    return lines


def test_probe_is_silent_on_the_same_machine(migrated: psycopg.Connection, tmp_path: Path) -> None:
    assert said(migrated, Hashing(tmp_path)) == []
    assert said(migrated, Hashing(tmp_path)) == []
    assert said(migrated, Turned(tmp_path, 0.9995)) == []


def test_probe_warns_of_another_rounding(migrated: psycopg.Connection, tmp_path: Path) -> None:
    said(migrated, Hashing(tmp_path))
    [line] = said(migrated, Turned(tmp_path, 0.99))
    assert "cosine 0.9900" in line
    assert line.count(describe_machine()) == 2


def test_probe_refuses_other_vectors_with_remedy(
    migrated: psycopg.Connection, tmp_path: Path
) -> None:
    said(migrated, Hashing(tmp_path))
    with pytest.raises(EncoderProbeError, match=r"cosine 0\.9000, .* MAIL_PRECISION=fp32"):
        said(migrated, Turned(tmp_path, 0.9))
    other = Turned(tmp_path, 0.9)
    other.fingerprint = "another"
    assert said(migrated, other) == []


def test_check_before_queries_records_nothing(migrated: psycopg.Connection, tmp_path: Path) -> None:
    encoder, lines = Hashing(tmp_path), list[str]()
    check_encoder(migrated, encoder, lines.append)
    assert encoder.calls == [], "nothing was encoded with it yet"
    said(migrated, encoder)
    check_encoder(migrated, encoder, lines.append)
    assert lines == []
    check_encoder(migrated, Turned(tmp_path, 0.99), lines.append)
    assert "cosine 0.9900" in lines[0]
    with pytest.raises(EncoderProbeError, match=r"cosine 0\.9000, "):
        check_encoder(migrated, Turned(tmp_path, 0.9), lines.append)


def test_encoder_is_probed_before_first_text(migrated: psycopg.Connection, tmp_path: Path) -> None:
    encoder = Hashing(tmp_path)
    probed = ProbedEncoder(encoder, migrated, print)
    probed.encode_documents(["a", "b"])
    probed.encode_documents(["c"])
    assert encoder.calls == [[PROBE_TEXT], ["a", "b"], ["c"]]
    with pytest.raises(EncoderProbeError):
        ProbedEncoder(Turned(tmp_path, 0.5), migrated, print).encode_documents(["a"])
