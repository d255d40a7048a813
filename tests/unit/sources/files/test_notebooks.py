"""Notebooks: their notes, code and outputs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import UnreadableFile
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.notebooks import read_notebook

FILES = LocalFiles()
FIELDS = ("source", "outputs", "data", "text", "text/plain", "cell_type", "ename", "level")


def write_notebook(*cells: dict[str, object], **fields: object) -> str:
    return json.dumps(
        {"nbformat": 4, "cells": cells, "metadata": {"language_info": {"name": "python"}}, **fields}
    )


def code_cell(source: object, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_a_notebook_is_notes_code_and_outputs() -> None:
    text = write_notebook(
        {"cell_type": "markdown", "source": ["# Study\n", "Why."]},
        code_cell("print(1)", {"output_type": "stream", "text": ["1\n", "2\n"]}),
        code_cell("x", {"data": {"text/plain": "\x1b[31m42\x1b[0m", "image/png": "iVBOR"}}),
        code_cell("```", {"ename": "NameError", "evalue": "no x", "traceback": []}),
        {"cell_type": "raw", "source": "raw"}, code_cell("", {"data": {"text/html": "<b>only</b>"}}),
    )  # fmt: skip
    [document] = FILES.parse_bytes(text.encode(), "a.ipynb").documents
    assert document.text == (
        "# Study\nWhy.\n\n```python\nprint(1)\n```\n\n```\n1\n2\n```\n\n```python\nx\n```\n\n```\n42\n```\n\n"
        "````python\n```\n````\n\n```\nNameError: no x\n```\n\nraw"
    )
    assert (document.title, document.syntax) == ("Study", "markdown")
    assert document.metadata["media_type"] == "application/x-ipynb+json"


def test_a_notebook_of_the_third_format_is_read() -> None:
    old = {"nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "heading", "level": 2, "source": "Part"}, {"cell_type": "code", "input": "1 + 1"},
    ]}]}  # fmt: skip
    assert read_notebook(json.dumps(old)).markdown == "## Part\n\n```\n1 + 1\n```"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": 1}', "[" * 100_000, "null", '"cells"'])
def test_what_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFile, match="not valid application/x-ipynb"):
        FILES.parse_bytes(text.encode(), "a.ipynb")


def test_an_empty_notebook_is_a_notice() -> None:
    parsed = FILES.parse_bytes(write_notebook().encode(), "a.ipynb")
    assert (parsed.documents, parsed.notice) == ((), "the notebook is empty")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS), inner),
)


@given(st.lists(JUNK), JUNK)
def test_cells_of_any_shape_are_read(cells: list[object], metadata: object) -> None:
    text = read_notebook(json.dumps({"cells": cells, "metadata": metadata})).markdown
    assert "\0" not in text
    text.encode()
