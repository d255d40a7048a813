import asyncio
import gzip
import hashlib
import json
import random
import threading
from importlib import resources
from pydoc_data.topics import topics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries
from tests.support.embedders import needs_multilingual

from conspectus.errors import MissingExtra
from conspectus.providers.onnx_embedder import MINILM, MULTILINGUAL, WINDOW, OnnxEmbedder

PACKAGED = resources.files("conspectus.providers") / "minilm"
MODELS = [MINILM, pytest.param(MULTILINGUAL, marks=needs_multilingual)]
PARAGRAPHS = [text for topic in topics.values() for text in topic.split("\n\n") if 60 < len(text) < 1500][:40]


@pytest.fixture(scope="module", params=MODELS)
def embedder(request):
    return OnnxEmbedder(request.param, threads=2)


@pytest.fixture(scope="module")
def multilingual():
    return OnnxEmbedder(MULTILINGUAL, threads=2)


@pytest.fixture(scope="module")
def others(embedder):
    model = MULTILINGUAL if "multilingual" in embedder.space.name else MINILM
    return {threads: OnnxEmbedder(model, threads=threads) for threads in (1, 3)}


async def embed_alone(embedder, text):
    """The vector of a text that is embedded by itself."""
    return (await embedder.embed_documents([text]))[0]


def test_the_packaged_files_are_those_of_the_manifest():
    manifest = json.loads((PACKAGED / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["files"]) == {"model.onnx", "tokenizer.json"}
    for name, expected in manifest["files"].items():
        assert hashlib.sha256((PACKAGED / name).read_bytes()).hexdigest() == expected
    assert manifest["cosine_to_fp32"] >= 0.99


@needs_multilingual
def test_the_files_of_the_multilingual_package_are_those_of_its_manifest():
    folder = resources.files("conspectus_multilingual")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["files"]) == {"model.onnx", "model.words", "tokenizer.model.gz"}
    contents = {name: (folder / name).read_bytes() for name in manifest["files"]}
    for name, expected in manifest["files"].items():
        assert hashlib.sha256(contents[name]).hexdigest() == expected
    assert sum(map(len, contents.values())) <= 80_000_000
    assert len(gzip.decompress(contents["tokenizer.model.gz"])) > 4_000_000
    assert manifest["cosine_to_float"] >= 0.99


def test_weights_cannot_overflow_the_sixteen_bit_sums_of_older_processors():
    """AVX2 without VNNI adds two products of neighboring rows in 16 bits; activations reach 255."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_model_from_string((PACKAGED / "model.onnx").read_bytes()).graph
    constants = {constant.name: onnx.numpy_helper.to_array(constant) for constant in graph.initializer}
    products = [node for node in graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(products) == 24
    for node in products:
        pairs = constants[node.input[1]].astype(int).reshape(-1, 2, constants[node.input[1]].shape[1])
        for sign in (1, -1):
            assert 255 * np.maximum(sign * pairs, 0).sum(axis=1).max() <= 32767


def test_the_space_names_model_size_and_version(embedder):
    assert embedder.space.name in {"all-MiniLM-L6-v2/384/int8-1", "multilingual-e5-small/384/int8-2"}


def test_a_model_that_is_not_installed_names_its_package():
    with pytest.raises(MissingExtra, match=r"needs conspectus-unknown: pip install 'conspectus\[unknown\]'$"):
        OnnxEmbedder("unknown")


@needs_multilingual
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("¿Cómo recupero mi dinero?", "Refunds are paid within two weeks."),
        ("متى يغادر القطار؟", "Der Zug fährt um neun Uhr ab."),
        ("如何退款?", "Возврат денег занимает две недели."),
    ],
)
async def test_a_question_finds_its_answer_in_another_language(multilingual, question, answer):
    rows = await multilingual.embed_documents(
        [answer, "The cat sat on the mat.", "Die Katze schläft.", "猫が眠っている。"]
    )
    assert (rows @ await multilingual.embed_query(question)).argmax() == 0


@needs_multilingual
async def test_the_multilingual_model_knows_every_script(multilingual):
    assert all(map(multilingual.knows, ["refund", "退款", "возврат", "كيف", ""]))


@needs_multilingual
async def test_queries_and_passages_are_different_texts_for_the_multilingual_model(multilingual):
    query, passage = await multilingual.embed_query("refund"), await embed_alone(multilingual, "refund")
    assert 0.5 < query @ passage < 0.999


async def test_rows_are_unit_vectors_in_the_order_of_the_texts(embedder):
    rows = await embedder.embed_documents(PARAGRAPHS)
    assert (rows.shape, rows.dtype) == ((len(PARAGRAPHS), 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    for text, row in zip(PARAGRAPHS, rows, strict=True):
        assert row.tobytes() == (await embed_alone(embedder, text)).tobytes()


async def test_a_query_of_the_shipped_model_is_embedded_as_a_passage_is():
    embedder = OnnxEmbedder(threads=1)
    for text in PARAGRAPHS[:5]:
        assert (await embedder.embed_query(text)).tobytes() == (await embed_alone(embedder, text)).tobytes()


async def test_meaning_decides_what_is_near(embedder):
    question = await embedder.embed_query("How do I get my money back?")
    near, far = await embedder.embed_documents(
        ["Refunds are paid within two weeks.", "The cat sat on the mat."]
    )
    assert question @ near > 0.2 + question @ far


@settings(max_examples=tries(10))
@given(st.permutations(range(20)), st.integers(1, 20))
@pytest.mark.parametrize("threads", [1, 3])
async def test_company_and_threads_do_not_change_a_vector(embedder, others, threads, order, count):
    positions = order[:count]
    rows = await others[threads].embed_documents([PARAGRAPHS[position] for position in positions])
    for position, row in zip(positions, rows, strict=True):
        assert row.tobytes() == (await embed_alone(embedder, PARAGRAPHS[position])).tobytes()


@pytest.mark.parametrize(
    "tokens", [1, 2, WINDOW - 2, WINDOW - 1, WINDOW, 3 * WINDOW, pytest.param(2_000, marks=pytest.mark.slow)]
)
async def test_the_same_text_in_different_company_at_every_length(embedder, tokens):
    text = " ".join(random.Random(tokens).choices(["tree", "house", "river", "stone", "light"], k=tokens))
    one = await embed_alone(embedder, text)
    rows = await embedder.embed_documents([text, *PARAGRAPHS[:5], text, text + " end"])
    assert rows[0].tobytes() == rows[6].tobytes() == one.tobytes()


async def test_nothing_of_a_long_text_is_cut(embedder):
    filler = "The river flows past the old stone house. " * 300
    without, at_the_end = await embedder.embed_documents([filler, filler + "Quantum chromodynamics. " * 100])
    question = await embedder.embed_query("quantum chromodynamics")
    assert question @ at_the_end > question @ without + 0.1


async def test_a_word_of_any_length_counts(embedder):
    """The published tokenizer drops words over 100 characters; Thai writes whole phrases without a space."""
    one, other = await embedder.embed_documents(["ab" * 200, "x7" * 200])
    assert one.tobytes() != other.tobytes()


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u2003", "\x00", "\u200b"])
async def test_blank_texts_share_one_defined_vector(embedder, blank):
    np.testing.assert_array_equal(await embedder.embed_query(blank), await embedder.embed_query(""))
    assert abs(np.linalg.norm(await embedder.embed_query(blank)) - 1) < 1e-6


async def test_no_texts_give_no_rows(embedder):
    assert (await embedder.embed_documents([])).shape == (0, 384)


@given(st.lists(st.text(st.characters(exclude_categories=[])), max_size=5))
async def test_any_text_has_a_finite_unit_vector(embedder, texts):
    rows = await embedder.embed_documents(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(len(texts)), rtol=1e-6)


async def test_markers_written_in_a_text_are_harmless(embedder):
    row = await embedder.embed_query("[CLS] [SEP] [PAD] [MASK] [UNK]")
    assert np.isfinite(row).all()


async def test_the_event_loop_stays_free_and_questions_do_not_wait_for_documents(embedder):
    work = asyncio.create_task(embedder.embed_documents(PARAGRAPHS * 5))
    await embedder.embed_query("What is a class?")
    assert not work.done()
    assert (await work).shape == (5 * len(PARAGRAPHS), 384)


async def test_a_cancelled_call_stops_and_leaves_the_embedder_usable(embedder):
    work = asyncio.create_task(embedder.embed_documents(PARAGRAPHS * 20))
    await embedder.embed_query("meanwhile")
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await embedder.embed_documents(PARAGRAPHS[:2])).shape == (2, 384)


async def test_concurrent_calls_get_their_own_rows(embedder):
    parts = [PARAGRAPHS[start : start + 8] for start in range(0, 40, 8)]
    together = await asyncio.gather(*(embedder.embed_documents(part) for part in parts))
    for part, rows in zip(parts, together, strict=True):
        np.testing.assert_array_equal(rows, await embedder.embed_documents(part))


async def test_closing_ends_its_threads():
    before = set(threading.enumerate())
    embedder = OnnxEmbedder(threads=3)
    await embedder.embed_documents(PARAGRAPHS[:10])
    await embedder.close()
    left = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("embedder")]
    assert left == []


@pytest.mark.data
async def test_naughty_strings(embedder, evaluation):
    texts = json.loads((evaluation("naughty_strings") / "blns.json").read_text(encoding="utf-8"))
    rows = await embedder.embed_documents(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)


class Counted:
    """A session that counts its runs."""

    def __init__(self, session):
        self.session = session
        self.runs = 0

    def run(self, *arguments):
        self.runs += 1
        return self.session.run(*arguments)


async def test_the_last_queries_are_not_embedded_again():
    embedder = OnnxEmbedder(threads=1, cached_queries=2)
    session = embedder._session = Counted(embedder._session)
    first = await embedder.embed_query("a")
    for query in ("b", "a", "c", "a", "\ud800"):
        await embedder.embed_query(query)
    assert session.runs == 4
    np.testing.assert_array_equal(await embedder.embed_query("a"), first)
    np.testing.assert_array_equal(first, (await embedder.embed_documents(["a"]))[0])
    await embedder.embed_query("b")
    assert session.runs == 6
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    await embedder.close()


async def test_without_a_cache_every_query_is_embedded():
    embedder = OnnxEmbedder(threads=1)
    session = embedder._session = Counted(embedder._session)
    for _ in range(3):
        await embedder.embed_query("a")
    assert session.runs == 3
    await embedder.close()
