"""List what the base install brings, with sizes, in docs/get-started/install.md.

    python scripts/install_sizes.py

The packages are those of requirements/base.txt for this platform. Sizes are those of the files in this
environment, without what Python compiles; the wheel of Conspectus is not among them.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "get-started" / "install.md"
REQUIREMENTS = ROOT / "requirements" / "base.txt"
BLOCK = re.compile(r"^([A-Za-z0-9_.-]+)==.*?(?=^[A-Za-z0-9_.-]+==|\Z)", re.MULTILINE | re.DOTALL)
VIA = re.compile(r"^    #(?: via|  ) (?!-)([A-Za-z0-9_.-]+)", re.MULTILINE)
BEGIN, END = "<!-- sizes -->\n", "<!-- end of sizes -->\n"
MEGABYTE = 1_000_000
MIN_MEGABYTES = 4
"""Smaller packages are one row together."""


def main() -> None:
    """Write the table."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{make_table()}{END}{after}", encoding="utf-8")


def list_required_packages() -> dict[str, list[str]]:
    """Return the packages of the base install, each with the packages that need it."""
    packages = {}
    for match in BLOCK.finditer(REQUIREMENTS.read_text(encoding="utf-8")):
        via = VIA.findall(match[0])
        packages[match[1]] = ["Conspectus" if name == "conspectus" else name for name in via]
    return packages


def make_table() -> str:
    """Return the rows, largest first."""
    rows = sorted(
        (-megabytes_of(installed), name, via)
        for name, via in list_required_packages().items()
        if (installed := find_installed_package(name)) is not None
    )
    large = [row for row in rows if -row[0] >= MIN_MEGABYTES]
    small = rows[len(large) :]
    total = sum(-size for size, _, _ in rows)
    lines = ["| Package | MB | Needed by |", "| --- | --- | --- |"]
    lines += [f"| {name} | {-size:.1f} | {', '.join(via)} |" for size, name, via in large]
    lines += [f"| {len(small)} smaller ones | {sum(-size for size, _, _ in small):.1f} | |"]
    lines += [f"| **{len(rows)} packages** | **{total:.0f}** | |"]
    return "\n".join(lines) + "\n"


def find_installed_package(name: str) -> Distribution | None:
    """Return a package of this environment; None for one of another platform."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def megabytes_of(package: Distribution) -> float:
    """Return the size of the files of a package."""
    files = (file.locate() for file in package.files or () if file.suffix != ".pyc")
    return sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file()) / MEGABYTE


if __name__ == "__main__":
    main()
