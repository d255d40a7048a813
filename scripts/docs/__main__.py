"""Build the documentation site into the package, where `conspectus serve` finds it: `python -m scripts.docs`.

Pages made from code are put beside a copy of docs/ in build/docs. Any warning, broken link or anchor fails.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

from scripts.docs import finish, llms, pages
from sphinx.cmd.build import build_main

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / "build" / "docs"
OUT: Final = ROOT / "src" / "conspectus" / "web" / "docs"


def main() -> None:
    """Make the pages, run Sphinx, and finish its output."""
    source, made = WORK / "source", WORK / "html"
    shutil.rmtree(WORK, ignore_errors=True)
    pages.write(ROOT, source)
    if build_main(
        ["-q", "-W", "--keep-going", "-j", "auto", "-d", str(WORK / "trees"), str(source), str(made)]
    ):
        sys.exit("the documentation has warnings")
    if broken := finish.broken_links(made):
        sys.exit("\n".join(["links that lead nowhere:", *broken]))
    for name, text in llms.texts(source).items():
        (made / name).write_text(text, encoding="utf-8")
    shutil.rmtree(OUT, ignore_errors=True)
    finish.pack(made, OUT)
    files = [each for each in OUT.rglob("*") if each.is_file()]
    print(
        f"{len(files)} files, {sum(each.stat().st_size for each in files):,} bytes in {OUT.relative_to(ROOT)}"
    )


if __name__ == "__main__":
    main()
