"""Vectors become unit vectors."""

import numpy as np
import pytest

from conspectus.text.vectors import unit


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_vectors_of_any_length_become_one(scale: float) -> None:
    np.testing.assert_allclose(unit([3 * scale, 4 * scale]), [0.6, 0.8], rtol=1e-6)
