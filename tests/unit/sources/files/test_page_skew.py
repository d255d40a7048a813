"""The skew of a page is found from its lines; what has none is left as it is."""

import numpy as np
import pytest
from PIL import Image
from tests.support.page_images import LINES, draw_page

from conspectus.sources.files.page_skew import FINE_DEGREES, skew_degrees


@pytest.mark.parametrize("degrees", [-3, -1.4, 0, 0.6, 2, 2.75])
def test_a_page_is_set_straight(degrees: float) -> None:
    page = draw_page([*LINES, *LINES]).rotate(degrees, expand=True, fillcolor=255)
    assert skew_degrees(page) == pytest.approx(-degrees, abs=FINE_DEGREES)


def test_a_page_with_one_line_is_set_straight() -> None:
    page = draw_page(LINES[:1]).rotate(-1.5, fillcolor=255)
    assert skew_degrees(page) == pytest.approx(1.5, abs=FINE_DEGREES)


def test_a_page_on_its_side_is_left_as_it_is() -> None:
    assert skew_degrees(draw_page([*LINES, *LINES]).rotate(90, expand=True)) == 0


@pytest.mark.parametrize("size", [(1, 1), (1, 5_000), (40_000, 2), (600, 800)])
def test_an_image_without_lines_is_left_as_it_is(size: tuple[int, int]) -> None:
    assert skew_degrees(Image.new("L", size, 255)) == 0


def test_noise_is_left_as_it_is() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (800, 600), dtype=np.uint8)
    assert skew_degrees(Image.fromarray(noise)) == 0
