import json
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus import providers
from conspectus.errors import InvalidInput, UnknownTokenizer
from conspectus.providers.byte_pair_encoding import MAX_CACHED, BytePairs, count_by_heap, count_joined
from conspectus.providers.tokenizers import ENCODINGS, counter
from conspectus.providers.vocabulary import Vocabulary, map_vocabulary, pack_tokens
from conspectus.text.tokens import ESTIMATORS

MINILM = Path(providers.__file__).parent / "minilm" / "tokenizer.json"
ALL = [*ENCODINGS, *ESTIMATORS, f"hf:{MINILM}"]


@pytest.fixture(scope="module")
def counters():
    return {name: counter(name) for name in ALL}


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("o200k_base", "", 0),
        ("o200k_base", "hello world", 2),
        ("o200k_base", "<|endoftext|>", 7),
        ("o200k_base", "\x00", 1),
        ("o200k_base", " " * 100_000, 782),
        ("o200k_base", "こんにちは世界", 2),
        ("cl100k_base", "hello world", 2),
        ("cl100k_base", "こんにちは世界", 4),
        (f"hf:{MINILM}", "", 0),
        (f"hf:{MINILM}", "hello world", 2),
        (f"hf:{MINILM}", "word " * 5_000, 5_000),
    ],
)
def test_counts_that_are_known(name, text, tokens):
    assert counter(name)(text) == tokens


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators_are_the_ones_of_the_text_package(name):
    assert counter(name) is ESTIMATORS[name]


@pytest.mark.parametrize("name", ["", "gpt-5", "O200K_BASE", "o200k_base ", "hf", "../o200k_base"])
def test_an_unknown_name_is_refused_by_name(name):
    with pytest.raises(UnknownTokenizer) as refused:
        counter(name)
    assert refused.value.name == name


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"model": {"type": "No"}}'])
def test_a_file_that_is_no_tokenizer_is_refused(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"tokenizer\.json"):
        counter(f"hf:{path}")


@pytest.mark.parametrize("path", ["", "/no/such/file", "."])
def test_a_file_that_cannot_be_read_is_refused(path):
    with pytest.raises(InvalidInput, match="cannot read"):
        counter(f"hf:{path}")


def test_truncation_and_padding_in_the_file_are_not_obeyed(tmp_path):
    description = json.loads(MINILM.read_text(encoding="utf-8"))
    description["truncation"] = {
        "max_length": 4,
        "strategy": "LongestFirst",
        "stride": 0,
        "direction": "Right",
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    assert counter(f"hf:{path}")("one two three four five six") == 6


@pytest.mark.parametrize("name", ENCODINGS)
def test_surrogates_count_as_what_they_mean(name):
    count = counter(name)
    assert count("a\ud800b") == count("a\ufffdb")
    assert count("\ud83d\ude00") == count("\U0001f600")
    assert count("\ude00\ud83d") == count("\ufffd\ufffd")


@given(st.text(st.characters(exclude_categories=[])))
@pytest.mark.parametrize("name", ALL)
def test_every_counter_takes_every_text(counters, name, text):
    assert counters[name](text) >= 0


def test_counters_may_be_shared_by_threads():
    count = counter("o200k_base")
    texts = [f"number {n} " * n for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, texts)) == [count(text) for text in texts]


@pytest.fixture(scope="module", params=ENCODINGS)
def encoding(request):
    """A name, and what bpe-openai counts: its compiled part alone, as the whole takes 2 s to import."""
    package = Path(next(iter(find_spec("bpe_openai").submodule_search_locations)))
    spec = PathFinder.find_spec("bpe_openai._bindings", [str(package)])
    library = module_from_spec(spec)
    spec.loader.exec_module(library)
    return request.param, library.tokenizer_for_encoding(request.param).count


KNOWN = st.characters(exclude_categories=["Cs", "Cn"], max_codepoint=0x2FFF)
AWKWARD = st.sampled_from("aZsS'tld中文か²_-/. \t\r\n\x1c\x85\u200b\u2028\u00e9\u017f\u00df\u01c5\u0661")
TEXTS = st.one_of(
    st.text(st.one_of(KNOWN, AWKWARD)),
    st.text(st.sampled_from("abcABC'stlLveVE \r\n\t019.,/")),
    st.text(AWKWARD),
)


@given(TEXTS)
@settings(max_examples=tries(400))
def test_tokens_are_those_of_another_library(encoding, text):
    name, count = encoding
    assert counter(name)(text) == count(text)


@pytest.mark.parametrize(
    "text", ["a" * 20_000, "ab" * 9_000, "的一是在不了" * 2_000, " " * 20_000, "\x85" * 5_000]
)
def test_long_pieces_are_counted_as_another_library_does(encoding, text):
    name, count = encoding
    assert counter(name)(text) == count(text)


@given(st.binary(min_size=1, max_size=80))
def test_pieces_are_joined_alike_with_and_without_a_compiler(piece):
    vocabulary = map_vocabulary("o200k_base")
    assert count_by_heap(piece, vocabulary) == count_joined(piece, vocabulary)


def test_the_memory_of_a_counter_is_bounded():
    single_bytes = Vocabulary(pack_tokens([bytes([byte]) for byte in range(256)]))
    counts = BytePairs(single_bytes, str.split, str.split)
    words = [str(number) for number in range(MAX_CACHED + 10)]
    assert counts(" ".join(words)) == sum(map(len, words))
    assert len(counts._cache) <= MAX_CACHED
    assert counts("x" * 1_000) == 1_000
    assert "x" * 1_000 not in counts._cache


@pytest.mark.data
@pytest.mark.parametrize("name", ALL)
def test_naughty_strings(name, evaluation):
    count = counter(name)
    for text in json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8")):
        assert count(text) <= 4 * len(text.encode()) + 1
