"""Another converter, in its own environment.

Reads paths from standard input, and writes a line of JSON for each.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable


def markitdown() -> Callable[[str], str]:
    """Return the conversion of MarkItDown."""
    converter = importlib.import_module("markitdown").MarkItDown()
    return lambda path: str(converter.convert(path).text_content)


def pdfminer() -> Callable[[str], str]:
    """Return the text extraction of pdfminer.six with its layout analysis."""
    library = importlib.import_module("pdfminer.high_level")
    return lambda path: str(library.extract_text(path)) if path.endswith(".pdf") else ""


CONVERTERS = {"markitdown": markitdown, "pdfminer.six": pdfminer}


def main() -> None:
    """Convert each file; one that fails has an empty text."""
    convert = CONVERTERS[sys.argv[1]]()
    for line in sys.stdin:
        begin = time.process_time()
        try:
            text = convert(line.strip())
        except Exception as error:  # noqa: BLE001 - a converter may raise anything
            print(f"{line.strip()}: {error!r}", file=sys.stderr)
            text = ""
        print(json.dumps({"text": text, "seconds": time.process_time() - begin}), flush=True)


if __name__ == "__main__":
    main()
