"""Give the environment that runs this the package in src, and the program `conspectus`."""

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """#!{python}
from conspectus.cli.entry import main

main()
"""


def main() -> None:
    """Write a path file and a program."""
    packages = Path(sysconfig.get_path("purelib"))
    (packages / "conspectus.pth").write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
    program = Path(sys.prefix) / "bin" / "conspectus"
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)


if __name__ == "__main__":
    main()
