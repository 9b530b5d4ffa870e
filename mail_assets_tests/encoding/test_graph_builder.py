"""Weights in int8."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.encoding.model_build import quantise_weights


@settings(max_examples=100)
@given(
    seed=st.integers(0, 1000), rows=st.integers(1, 9), spread=st.sampled_from([1e-30, 1e-3, 1e4])
)
def test_a_quantised_weight_is_off_by_half_a_step_at_most(
    seed: int, rows: int, spread: float
) -> None:
    weight = np.random.default_rng(seed).normal(0, spread, (rows, 7)).astype(np.float32)
    weight[:, 3] = 0
    values, scales = quantise_weights(weight)
    assert values.dtype == np.int8
    assert np.abs(values.astype(int)).max() <= 127
    # Half a step, and float32 rounding of the quotient.
    error = np.abs(values * scales.astype(np.float64) - weight)
    assert (error <= scales * 0.50001).all()
