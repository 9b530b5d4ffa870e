"""A row for each word piece: centred input embeddings, rare pieces heavier."""

import io

import numpy as np

from mail_assets.encoding.model_build import SMOOTHING, build_table, serialise_table

EMBEDDINGS = np.random.default_rng(0).normal(3, 1, (2_000, 4)).astype(np.float32)


def test_what_all_pieces_share_is_taken_out() -> None:
    moved = build_table(EMBEDDINGS + np.float32(7))
    np.testing.assert_allclose(moved, build_table(EMBEDDINGS), atol=1e-5)


def test_a_piece_weighs_as_smooth_inverse_frequency_says() -> None:
    harmonic = sum(1 / rank for rank in range(1, len(EMBEDDINGS) + 1))
    centred = EMBEDDINGS - EMBEDDINGS.mean(axis=0)
    for rank in (1, 10, 2_000):
        weight = SMOOTHING / (SMOOTHING + 1 / (rank * harmonic))
        found = build_table(EMBEDDINGS)[rank - 1]
        np.testing.assert_allclose(found, centred[rank - 1] * weight, rtol=1e-3)


def test_half_precision_weights_make_a_table_of_float32() -> None:
    assert build_table(EMBEDDINGS.astype(np.float16)).dtype == np.float32


def test_a_table_is_read_as_it_was_written() -> None:
    table = build_table(EMBEDDINGS)
    read = np.load(io.BytesIO(serialise_table(table)))
    assert read.tobytes() == table.tobytes()
