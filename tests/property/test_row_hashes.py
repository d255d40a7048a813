"""The hash of a row is the same however it is come by."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

from conspectus.records.transfer import checksums

QUOTES = st.lists(st.sampled_from([b"'", b'"', b"\\", b"\x00", b"\n", b"a", "日".encode()])).map(b"".join)
VALUES = st.one_of(
    st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(max_size=40), QUOTES
)


@given(st.lists(VALUES, max_size=4), st.integers(1, 9))
@settings(max_examples=tries(300))
def test_a_row_has_one_hash_whole_or_in_parts(values: list[object], part: int) -> None:
    row = tuple(values)
    assert checksums.hash_in_parts(row, size=part) == checksums.hash_of(checksums.encode_row(row))
