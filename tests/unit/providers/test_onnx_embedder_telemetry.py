"""Imported libraries send no telemetry."""

import os
import subprocess
import sys
from pathlib import Path

from conspectus.settings import QUIET

EMBEDS = (
    "import asyncio; from conspectus.providers.onnx_embedder import OnnxEmbedder;"
    "asyncio.run(OnnxEmbedder().embed_documents(['a text']))"
)


def files_left_by(program: str, home: Path, **environment: str) -> list[str]:
    """What a program that has a home of its own leaves in it."""
    inherited = {name: value for name, value in os.environ.items() if name not in {QUIET, "XDG_CACHE_HOME"}}
    variables = {**inherited, "HOME": str(home), **environment}
    subprocess.run([sys.executable, "-c", program], env=variables, check=True, capture_output=True)
    return [str(path.relative_to(home)) for path in home.rglob("*")]


def test_embedding_leaves_no_id_of_the_machine(tmp_path: Path) -> None:
    assert files_left_by(EMBEDS, tmp_path) == []


def test_whoever_runs_it_may_decide_otherwise(tmp_path: Path) -> None:
    program = f"import os; import conspectus.providers; assert os.environ['{QUIET}'] == '0'"
    assert files_left_by(program, tmp_path, **{QUIET: "0"}) == []
