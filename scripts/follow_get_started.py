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
NEXT = re.compile(r"^Next: \[.*?\]\(([\w-]+\.md)\)", re.MULTILINE)
FIRST = "install.md"
LAST = "conspectus ask"
MAX_SECONDS = 180
"""Of processor time; a busy second thread of the same core doubles what a step takes."""
DONE = "\x1edone"


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
    print(followed(arguments.wheel.resolve(), arguments.docs))


def followed(wheel: Path, docs: Path, python: str = sys.executable) -> str:
    """Run every step; the end of everything if one fails or it takes too long."""
    with tempfile.TemporaryDirectory() as made:
        folder, started, before = Path(made), time.monotonic(), used()
        steps = list(steps_of(docs / "get-started"))
        if not steps or LAST not in steps[-1].lines:
            sys.exit(f"no step of {docs}/get-started runs `{LAST}`")
        answer = run(steps, folder, environment(wheel, folder, python))
        seconds = used() - before
    if seconds > MAX_SECONDS:
        sys.exit(f"from `pip install` to an answer: {seconds:.0f} s of processor time")
    wall = time.monotonic() - started
    lines = len(answer.splitlines())
    return (
        f"{len(steps)} steps to an answer of {lines} lines: {seconds:.0f} s of processor time, {wall:.0f} s"
    )


def used() -> float:
    """Processor time of all processes that have ended here."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def steps_of(folder: Path) -> Iterator[Step]:
    """The blocks of each page up to its `Next:`, and with that page goes on; the last asks for an answer."""
    name: str | None = FIRST
    while name is not None:
        page = (folder / name).read_text(encoding="utf-8")
        further = NEXT.search(page)
        blocks = BLOCK.findall(page[: further.start()] if further else page)
        for number, (language, block, indented) in enumerate(blocks):
            shown = blocks[number + 1] if number + 1 < len(blocks) else ("", "", "")
            output = shown[1] if shown[0] == "text" else None
            if language == "sh" or (indented and name == FIRST):
                yield Step(re.sub("^    ", "", indented, flags=re.MULTILINE) or block, output)
            elif language == "python" and (folder / name).stem != "chat":
                yield Step(f"cat > program.py <<'PROGRAM'\n{block}PROGRAM\npython program.py\n", output)
            if LAST in block:
                return
        name = further[1] if further else None


def environment(wheel: Path, folder: Path, python: str) -> dict[str, str]:
    """The environment of this process without what changes what is tried; `python` is the given one."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "CONSPECTUS", "VIRTUAL"))
    }
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(Path(python).resolve())
    (folder / "constraints.txt").write_text(f"conspectus @ {wheel.as_uri()}\n", encoding="utf-8")
    path = os.pathsep.join((str(programs), "/usr/local/bin", "/usr/bin", "/bin"))
    return own | {"PATH": path, "PIP_CONSTRAINT": str(folder / "constraints.txt")}


def run(steps: list[Step], folder: Path, variables: dict[str, str]) -> str:
    """Give each step to one shell, and look at what it prints; the answer is what the last one printed."""
    work = folder / "work"
    work.mkdir()
    script = "\n".join(f"{{ {step.lines.rstrip()}\n}}\necho '{DONE}'" for step in steps)
    command = ["bash", "-eu", "-c", script]
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, check=False)
    printed = done.stdout.split(f"{DONE}\n")
    if done.returncode != 0:
        failed = steps[len(printed) - 1]
        sys.exit(f"this step ended with {done.returncode}:\n{failed.lines}\n{printed[-1]}{done.stderr}")
    for step, output in zip(steps, printed, strict=False):
        if step.output is not None and step.output.split() != output.split():
            sys.exit(f"the page shows\n{step.output}\nbut this step\n{step.lines}\nprints\n{output}")
    return printed[len(steps) - 1]


if __name__ == "__main__":
    main()
