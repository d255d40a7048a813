"""Slides are read in the order of their shapes, but a shape below another one after it."""

from tests.office_samples import pptx, shape

from conspectus.sources.files.local_files import LocalFiles


def placed(text: str, left: int, top: int, width: int = 100, height: int = 100) -> str:
    """Return a shape with a text at a place on its slide."""
    frame = (
        f'<p:spPr><a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm></p:spPr>'
    )
    return shape(text).replace("<p:txBody>", f"{frame}<p:txBody>", 1)


def read_in_order(*shapes: str) -> list[str]:
    [document] = LocalFiles().parse_bytes(pptx(["".join(shapes)]), "a.pptx").documents
    return document.text.split("\n\n")


def test_a_footnote_made_before_the_table_above_it_is_read_after_it() -> None:
    assert read_in_order(placed("note", 0, 300), placed("table", 0, 100)) == ["table", "note"]


def test_columns_are_read_in_the_order_of_their_author() -> None:
    shapes = (
        placed("left head", 0, 0), placed("left text", 0, 200),
        placed("right head", 200, 0), placed("right text", 200, 200),
    )  # fmt: skip
    assert read_in_order(*shapes) == ["left head", "left text", "right head", "right text"]


def test_shapes_that_overlap_lie_in_groups_or_have_no_place_keep_their_order() -> None:
    assert read_in_order(placed("over", 0, 50), placed("under", 0, 0)) == ["over", "under"]
    assert read_in_order(shape("first"), placed("low", 0, 300), placed("high", 0, 0)) == [
        "first", "high", "low",
    ]  # fmt: skip
    grouped = f"<p:grpSp>{placed('in group', 0, 300)}</p:grpSp>"
    assert read_in_order(grouped, placed("high", 0, 0)) == ["in group", "high"]
    flat = (placed("a", 0, 0, height=0), placed("b", 0, 0, height=-5), placed("c", 0, 0, height=0))
    assert sorted(read_in_order(*flat)) == ["a", "b", "c"]


def test_a_slide_of_very_many_shapes_is_read_as_it_is() -> None:
    shapes = [placed(f"s{number}", 0, 1_000_000 - 200 * number) for number in range(3_000)]
    assert read_in_order(*shapes)[0] == "s0"
