from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.providers.byte_pair_encoding import count_by_heap, count_joined
from conspectus.providers.tokenizers import ENCODINGS
from conspectus.providers.vocabulary import (
    Vocabulary,
    compress_tokens,
    decompress_tokens,
    map_vocabulary,
    pack_tokens,
)

TOKENS = st.lists(st.binary(max_size=6), unique=True, max_size=60)


@given(TOKENS, st.lists(st.binary(max_size=6), max_size=20))
def test_tokens_have_their_ranks_and_others_have_none(tokens, others):
    vocabulary, ranks = Vocabulary(pack_tokens(tokens)), {token: rank for rank, token in enumerate(tokens)}
    assert len(vocabulary) == len(tokens)
    assert [vocabulary[rank] for rank in range(len(tokens))] == tokens
    for token in [*tokens, *others]:
        assert vocabulary.get(token) == ranks.get(token)
        assert (token in vocabulary) == (token in ranks)


@given(TOKENS)
def test_compressed_tokens_are_the_same(tokens):
    assert decompress_tokens(compress_tokens(Vocabulary(pack_tokens(tokens)))) == tokens


@given(TOKENS, st.binary(min_size=1, max_size=30))
def test_the_compiled_function_reads_the_same_table(tokens, piece):
    vocabulary = Vocabulary(pack_tokens(tokens))
    assert count_joined(piece, vocabulary) == count_by_heap(piece, vocabulary)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_token_of_an_encoding_is_found(name):
    vocabulary = map_vocabulary(name)
    assert [vocabulary.get(vocabulary[rank]) for rank in range(len(vocabulary))] == [*range(len(vocabulary))]


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_token_is_joined_from_its_bytes(name):
    vocabulary = map_vocabulary(name)
    joined = [count_joined(vocabulary[rank], vocabulary) for rank in range(0, len(vocabulary), 7)]
    assert set(joined) == {1}


@pytest.mark.parametrize("size", [0, 7, 8, 100, 1_000])
def test_a_table_that_is_cut_short_is_refused(size):
    table = pack_tokens([bytes([first, second]) for first, second in pairwise(range(256))])
    cut = Vocabulary(table)
    cut.table = table[:size]
    if count_joined is not count_by_heap:
        with pytest.raises(ValueError, match="cut short"):
            count_joined(b"ab", cut)
