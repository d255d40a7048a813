"""The diagrams of the concepts are those of the script, and each stands in the page of its concept."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from scripts.docs.diagrams import DIAGRAMS, FIGURES, WIDTH

CONCEPTS = Path(__file__).resolve().parents[2] / "docs" / "concepts"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_drawn_by_the_script(name: str) -> None:
    assert (FIGURES / f"{name}.svg").read_text(encoding="utf-8") == DIAGRAMS[name]().svg()


@pytest.mark.parametrize("name", DIAGRAMS)
def test_nothing_of_a_diagram_lies_outside_of_it(name: str) -> None:
    root = ElementTree.fromstring(DIAGRAMS[name]().svg())
    height = float(root.attrib["height"])
    boxes = [shape.attrib for shape in root.iter() if shape.tag.endswith("rect")]
    assert boxes
    assert all(float(box["x"]) + float(box["width"]) <= WIDTH for box in boxes)
    assert all(float(box["y"]) + float(box["height"]) <= height for box in boxes)


def test_each_diagram_stands_in_a_page_of_the_concepts() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in CONCEPTS.glob("*.md"))
    assert [name for name in DIAGRAMS if f"(../figures/{name}.svg)" not in pages] == []
