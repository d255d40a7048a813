"""Follow docs/get-started line by line in an empty environment, from `pip install` to an answer.

    python scripts/follow_get_started.py WHEEL [--docs DIRECTORY]

Begins with install.md and goes on where a page says `Next:`, up to `conspectus ask`. Everything runs as it
stands, in one shell; only `pip install conspectus` takes the wheel. A program prints what the page shows.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
NEXT_PAGE = re.compile(r"^Next: \[.*?\]\(([\w-]+\.md)\)", re.MULTILINE)
FIRST_PAGE = "install.md"
LAST_COMMAND = "conspectus ask"
MAX_SECONDS = 180
"""Of processor time; a busy second thread of the same core doubles what a step takes."""
STEP_END = "\x1edone"


class Step(NamedTuple):
    """Lines for the shell, and what they print if the page says so."""

    lines: str
    output: str | None


def main() -> None:
    """Follow the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    print(follow_pages(arguments.wheel.resolve(), arguments.docs))


def follow_pages(wheel: Path, docs: Path, python: str = sys.executable) -> str:
    """Run every step; exit if one fails or all take too long."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, started_at, before = Path(temporary), time.monotonic(), processor_seconds()
        steps = list(steps_of(docs / "get-started"))
        if not steps or LAST_COMMAND not in steps[-1].lines:
            sys.exit(f"no step of {docs}/get-started runs `{LAST_COMMAND}`")
        answer = run_steps(steps, folder, environment(wheel, folder, python))
        seconds = processor_seconds() - before
    if seconds > MAX_SECONDS:
        sys.exit(f"from `pip install` to an answer: {seconds:.0f} s of processor time")
    wall = time.monotonic() - started_at
    lines = len(answer.splitlines())
    return (
        f"{len(steps)} steps to an answer of {lines} lines: {seconds:.0f} s of processor time, {wall:.0f} s"
    )


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended here."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def steps_of(folder: Path) -> Iterator[Step]:
    """Yield the blocks of each page up to its `Next:`, then those of the next page, up to the answer."""
    name: str | None = FIRST_PAGE
    while name is not None:
        page = (folder / name).read_text(encoding="utf-8")
        next_link = NEXT_PAGE.search(page)
        blocks = BLOCK.findall(page[: next_link.start()] if next_link else page)
        for number, (language, block, indented) in enumerate(blocks):
            output_block = blocks[number + 1] if number + 1 < len(blocks) else ("", "", "")
            output = output_block[1] if output_block[0] == "text" else None
            if language == "sh" or (indented and name == FIRST_PAGE):
                yield Step(re.sub("^    ", "", indented, flags=re.MULTILINE) or block, output)
            elif language == "python" and (folder / name).stem != "chat":
                yield Step(f"cat > program.py <<'PROGRAM'\n{block}PROGRAM\npython program.py\n", output)
            if LAST_COMMAND in block:
                return
        name = next_link[1] if next_link else None


def environment(wheel: Path, folder: Path, python: str) -> dict[str, str]:
    """Return the variables of this process that do not change the trial, with this `python` first."""
    variables = {
        name: content
        for name, content in os.environ.items()
        if not name.startswith(("PYTHON", "CONSPECTUS", "VIRTUAL"))
    }
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(Path(python).resolve())
    (folder / "constraints.txt").write_text(f"conspectus @ {wheel.as_uri()}\n", encoding="utf-8")
    path = os.pathsep.join((str(programs), "/usr/local/bin", "/usr/bin", "/bin"))
    return variables | {"PATH": path, "PIP_CONSTRAINT": str(folder / "constraints.txt")}


def run_steps(steps: list[Step], folder: Path, variables: dict[str, str]) -> str:
    """Give each step to one shell, and look at what it prints; the answer is what the last one printed."""
    work_folder = folder / "work"
    work_folder.mkdir()
    script = "\n".join(f"{{ {step.lines.rstrip()}\n}}\necho '{STEP_END}'" for step in steps)
    command = ["bash", "-eu", "-c", script]
    process = subprocess.run(
        command, cwd=work_folder, env=variables, capture_output=True, text=True, check=False
    )
    outputs = process.stdout.split(f"{STEP_END}\n")
    if process.returncode != 0:
        failed_step = steps[len(outputs) - 1]
        sys.exit(
            f"this step ended with {process.returncode}:\n{failed_step.lines}\n{outputs[-1]}{process.stderr}"
        )
    for step, output in zip(steps, outputs, strict=False):
        if step.output is not None and step.output.split() != output.split():
            sys.exit(f"the page shows\n{step.output}\nbut this step\n{step.lines}\nprints\n{output}")
    return outputs[len(steps) - 1]


if __name__ == "__main__":
    main()
