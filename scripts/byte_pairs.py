"""Pack the vocabularies of OpenAI's encodings from bpe-openai into src/conspectus/providers/byte_pairs/.

    python scripts/byte_pairs.py [--target DIRECTORY]

conspectus.providers.vocabulary says what is in a file.
"""

import argparse
import base64
import gzip
from importlib import resources
from pathlib import Path

from conspectus.providers.vocabulary import pack_tokens

TARGET = Path(__file__).parents[1] / "src" / "conspectus" / "providers" / "byte_pairs"
ENCODINGS = ("o200k_base", "cl100k_base")


def main() -> None:
    """Write a file for each encoding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=TARGET)
    target = parser.parse_args().target
    for name in ENCODINGS:
        tokens = read_vocabulary(name)
        (target / f"{name}.tokens").write_bytes(pack_tokens(tokens))
        print(f"{name}: {len(tokens)} tokens")


def read_vocabulary(name: str) -> list[bytes]:
    """Return the tokens in the order of their ranks, which are 0, 1, 2 and so on."""
    packed = (resources.files("bpe_openai") / "data" / f"{name}.tiktoken.gz").read_bytes()
    lines = [line.split() for line in gzip.decompress(packed).splitlines()]
    assert [int(rank) for _, rank in lines] == list(range(len(lines)))
    return [base64.b64decode(token) for token, _ in lines]


if __name__ == "__main__":
    main()
