"""A summary's interval contains its mean and is reproducible."""

import pytest

from mail_assets.evaluation.quality import estimate_mean


def test_an_interval_holds_the_mean_and_is_the_same_each_time() -> None:
    values = [0.0, 0.2, 0.9, 1.0, 1.0, 0.4]
    found = estimate_mean(values)
    assert found.low < found.mean < found.high
    assert found.mean == pytest.approx(3.5 / 6, abs=1e-4)
    assert found == estimate_mean(values)
    assert estimate_mean([0.5] * 4) == type(found)(0.5, 0.5, 0.5)
