"""The vector of a fixed text by each encoder, and the machine that made it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from mail_assets.postgres.statements import statement

#: How a vector is stored: float32, little-endian.
_STORED = np.dtype("<f4")


class EncoderProbe(NamedTuple):
    """A vector, and the machine that made it."""

    vector: npt.NDArray[np.float32]
    machine: str


def record_probe(
    connection: psycopg.Connection, fingerprint: str, probe: EncoderProbe
) -> EncoderProbe:
    """Record the probe of an encoder where it has none yet; return the one that is recorded."""
    parameters = {
        "fingerprint": fingerprint,
        "vector": probe.vector.astype(_STORED).tobytes(),
        "machine": probe.machine,
    }
    connection.execute(statement("encoder_probes", "record"), parameters)
    return read_probe(connection, fingerprint) or probe  # deleted between the two


def read_probe(connection: psycopg.Connection, fingerprint: str) -> EncoderProbe | None:
    """Return the probe of an encoder, None where nothing was encoded with it."""
    parameters = {"fingerprint": fingerprint}
    row = connection.execute(statement("encoder_probes", "read"), parameters).fetchone()
    if row is None:
        return None
    return EncoderProbe(np.frombuffer(row[0], _STORED).astype(np.float32), row[1])
