"""A stranger's first hour: python benchmarks/first_hour.py --wheel dist/conspectus-*.whl

The wheel and what it needs are downloaded into a folder, whose size is measured, and installed from there in
a new environment without an index. Then the five ways of the README run as they stand, each timed from the
start of its program to the end of its output; the server, to its first answer.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from results import Result, option_parser

# A program of this folder does not see the folder beside it by itself.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from scripts.follow_readme import BLOCK, ROOT, Readme, chat_model, environment

EXTRAS: Final = "mcp,openai"
"""What the fourth and the fifth way need beside the base install."""
STEPS: Final = (
    "1. library: six texts, a window, a reason",
    "2. command line: demo, context",
    "3. server: until it listens",
    "4. MCP: until it answers `initialize`",
    "5. proxy: a chat completion",
)


def download(requirement: str, folder: Path) -> str:
    """Download a requirement with all that it needs; return the number and the size of the files."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), requirement]
    subprocess.run(pip, check=True)
    files = list(folder.iterdir())
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB"


def install(requirement: str, wheels: Path, python: Path) -> None:
    """Install a requirement from a folder of wheels."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(wheels)]
    subprocess.run([*pip, requirement], check=True)


def with_extras(wheel: Path) -> str:
    """Return the requirement of the wheel with its extras."""
    return f"conspectus[{EXTRAS}] @ {wheel.as_uri()}"


def measure_steps(wheel: Path, folder: Path, wheels: Path) -> Iterator[tuple[str, str]]:
    """Yield each step of the first hour with its seconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install(str(wheel), wheels, python)
    yield "environment and `pip install conspectus`", f"{time.perf_counter() - began:.1f} s"
    began = time.perf_counter()
    install(with_extras(wheel), wheels, python)
    yield f"`pip install 'conspectus[{EXTRAS}]'`", f"{time.perf_counter() - began:.1f} s"
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    home = folder / "home"
    home.mkdir()
    with chat_model() as address:
        readme = Readme(python, home, environment(python, address))
        try:
            for step, (language, block, output) in zip(STEPS, blocks, strict=True):
                began = time.perf_counter()
                readme.follow(language, block, output)
                yield step, f"{time.perf_counter() - began:.1f} s"
        finally:
            readme.close()


def main() -> None:
    """Go through the first hour once and print a table."""
    parser = option_parser(__doc__)
    parser.add_argument("--wheel", required=True, type=Path, help="the wheel of this project")
    options = parser.parse_args()
    wheel = options.wheel.absolute()
    with tempfile.TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder)
        wheels = folder / "wheels"
        base, extended = download(str(wheel), wheels), download(with_extras(wheel), wheels)
        rows = []
        for step, seconds in measure_steps(wheel, folder, wheels):
            print(step, seconds, flush=True)
            rows.append([step, seconds])
    title = f"Packages of a local folder: {base}; with {EXTRAS} {extended}. Programs start cold."
    Result.of(title, ["step", "takes"], rows).shown("first-hour", save=options.save)


if __name__ == "__main__":
    main()
