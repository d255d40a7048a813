"""Pack the vocabularies of OpenAI's encodings from bpe-openai into src/conspectus/providers/byte_pairs/.

    python scripts/byte_pairs.py [--target DIRECTORY]

A file is zlib-compressed: the number of tokens in four bytes, the length of each in one, and the bytes of
all, in the order of their ranks.
"""

import argparse
import base64
import gzip
import zlib
from importlib import resources
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "conspectus" / "providers" / "byte_pairs"
ENCODINGS = ("o200k_base", "cl100k_base")


def main() -> None:
    """Write a file for each encoding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=TARGET)
    target = parser.parse_args().target
    for name in ENCODINGS:
        tokens = vocabulary(name)
        data = len(tokens).to_bytes(4, "big") + bytes(map(len, tokens)) + b"".join(tokens)
        (target / f"{name}.zlib").write_bytes(zlib.compress(data, 9))
        print(f"{name}: {len(tokens)} tokens")


def vocabulary(name: str) -> list[bytes]:
    """The tokens in the order of their ranks, which are 0, 1, 2 and so on."""
    packed = (resources.files("bpe_openai") / "data" / f"{name}.tiktoken.gz").read_bytes()
    lines = [line.split() for line in gzip.decompress(packed).splitlines()]
    assert [int(rank) for _, rank in lines] == list(range(len(lines)))
    return [base64.b64decode(token) for token, _ in lines]


if __name__ == "__main__":
    main()
