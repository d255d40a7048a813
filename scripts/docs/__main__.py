"""Build the documentation site into the package for `conspectus serve`: `python -m scripts.docs [SECONDS]`.

Pages made from code are put beside a copy of docs/ in build/docs. Any warning, broken link or anchor fails,
and a build that takes more than SECONDS of processor time, which a busy second thread of the core doubles.
"""

import resource
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
    source, html_folder = WORK / "source", WORK / "html"
    shutil.rmtree(WORK, ignore_errors=True)
    pages.write_pages(ROOT, source)
    if build_main(
        ["-q", "-W", "--keep-going", "-j", "auto", "-d", str(WORK / "trees"), str(source), str(html_folder)]
    ):
        sys.exit("the documentation has warnings")
    if broken := finish.find_broken_links(html_folder):
        sys.exit("\n".join(["links that lead nowhere:", *broken]))
    for name, text in llms.make_llms_texts(source).items():
        (html_folder / name).write_text(text, encoding="utf-8")
    shutil.rmtree(OUT, ignore_errors=True)
    finish.write_compressed(html_folder, OUT)
    files = [file for file in OUT.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    seconds = processor_seconds()
    print(f"{len(files)} files, {size:,} bytes in {OUT.relative_to(ROOT)}: {seconds:.0f} s of processor time")
    if sys.argv[1:] and seconds > float(sys.argv[1]):
        sys.exit(f"the documentation takes more than {sys.argv[1]} s")


def processor_seconds() -> float:
    """Return the processor time of this process and of those that have ended below it."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
