"""Each quickstart notebook runs from its first to its last cell, and prints what is stored in it."""

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
RUNNER = """
import json, sys
space = {}
for source in json.load(sys.stdin):
    exec(source, space)
    print("\\0", end="")
"""


def code_cells(notebook: Path) -> list[Any]:
    all_cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in all_cells if cell["cell_type"] == "code"]


def stored_output(cell: Any) -> str:
    """What a cell printed when it was saved."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def test_there_are_five() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == [
        "agent_memory",
        "documents",
        "permissions",
        "team_chat",
        "video",
    ]


def notebook_parameters() -> list[Any]:
    """All notebooks; of what the pages of the documentation do as well, only `make bench` runs it."""
    seldom = {"documents", "permissions", "video"}
    return [
        pytest.param(notebook, marks=[pytest.mark.slow] * (notebook.stem in seldom)) for notebook in NOTEBOOKS
    ]


@pytest.mark.parametrize("notebook", notebook_parameters(), ids=lambda notebook: notebook.stem)
async def test_a_notebook_prints_what_is_stored_in_it(
    notebook: Path, tmp_path: Path, preloaded: Path
) -> None:
    code = code_cells(notebook)
    program = await asyncio.create_subprocess_exec(
        preloaded / "python", "-c", RUNNER, cwd=tmp_path, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    sources = json.dumps(["".join(cell["source"]) for cell in code])
    printed, errors = await program.communicate(sources.encode())
    assert program.returncode == 0, errors.decode()
    assert printed.decode().split("\0")[:-1] == [stored_output(cell) for cell in code]
