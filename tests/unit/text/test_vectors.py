"""Vectors become unit vectors."""

import numpy as np
import pytest

from conspectus.errors import InvalidInput
from conspectus.text.vectors import MAX_DIMENSIONS, pack_rows, unit


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_vectors_of_any_length_become_one(scale: float) -> None:
    np.testing.assert_allclose(unit([3 * scale, 4 * scale]), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize(
    "numbers",
    [
        [], [[1.0]], [0.0, 0.0], [float("nan"), 1.0], [1.0, float("inf")], ["a"], [None], [1.0, [2.0]],
        [0.0] * MAX_DIMENSIONS, [1.0] * (MAX_DIMENSIONS + 1), 1.0,
    ],
)  # fmt: skip
def test_what_is_no_direction_is_no_vector(numbers: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        unit(numbers)  # type: ignore[arg-type]
    assert refused.value.field == "vector"


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300, -1.0])
def test_a_vector_has_length_one_whatever_its_scale(scale: float) -> None:
    vector = unit([3 * scale, 4 * scale])
    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6 * np.sign(scale), 0.8 * np.sign(scale)])
    assert np.linalg.norm(unit([scale] * MAX_DIMENSIONS)) == pytest.approx(1.0, abs=1e-4)


def test_vectors_are_stored_as_half_floats_with_the_low_byte_first() -> None:
    rows = np.array([[1.0, -2.0], [0.5, 65_504.0]], dtype=np.float32)
    assert pack_rows(rows) == [b"\x00\x3c\x00\xc0", b"\x00\x38\xff\x7b"]
    assert pack_rows(rows[:0]) == []
