import asyncio
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from conspectus.errors import InvalidInput
from conspectus.providers.static_embedder import StaticEmbedder

if find_spec("model2vec") is None:
    pytest.skip("needs conspectus[static]", allow_module_level=True)

from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = ["[UNK]", "north", "south", "east", "nothing"]
VECTORS = np.array([[9, 9, 9], [2, 0, 0], [-2, 0, 0], [0, 5, 0], [0, 0, 0]], dtype=np.float32)


def save(folder, vectors=VECTORS):
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    StaticModel(vectors, tokenizer, max_length=4).save_pretrained(folder)
    return folder


@pytest.fixture
def embedder(tmp_path):
    return StaticEmbedder(save(tmp_path / "compass"))


async def test_rows_are_unit_means_in_the_order_of_the_texts(embedder):
    rows = await embedder.embed_documents(["east", "north", "north north east"])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[:2], [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(rows[2], np.array([4, 5, 0]) / np.hypot(4, 5), rtol=1e-6)


async def test_a_query_has_the_vector_of_the_same_document(embedder):
    rows = await embedder.embed_documents(["south", "north east"])
    np.testing.assert_array_equal(await embedder.embed_query("north east"), rows[1])


async def test_a_long_text_is_not_cut(embedder):
    vector = await embedder.embed_query("north " * 2_000 + "east " * 2_000)
    np.testing.assert_allclose(vector, np.array([2, 5, 0]) / np.hypot(2, 5), rtol=1e-6)


async def test_long_texts_are_not_cut_while_others_are_embedded(embedder):
    text = "north " * 2_000 + "east " * 2_000
    vectors = await asyncio.gather(*(embedder.embed_query(text) for _ in range(20)))
    assert len({vector.tobytes() for vector in vectors}) == 1


@pytest.mark.parametrize("text", ["", "  \n", "unheard", "nothing", "north south", "\ud800"])
async def test_a_text_without_direction_has_equal_components(embedder, text):
    np.testing.assert_allclose(await embedder.embed_query(text), [3**-0.5] * 3, rtol=1e-6)


async def test_no_texts_give_no_rows(embedder):
    assert (await embedder.embed_documents([])).shape == (0, 3)


def test_a_space_names_its_folder_and_other_weights_are_another_space(tmp_path):
    folder = save(tmp_path / "compass")
    one, same = StaticEmbedder(folder).space, StaticEmbedder(folder).space
    other = StaticEmbedder(save(folder, VECTORS * 2)).space
    assert one.model == f"static:{folder}"
    assert one == same
    assert one != other


@pytest.mark.parametrize("damage", ["empty folder", "no folder", "weights cut", "no tokenizer"])
def test_a_folder_without_a_whole_model_is_refused(tmp_path, damage):
    folder = tmp_path / "compass"
    if damage == "empty folder":
        folder.mkdir()
    elif damage != "no folder":
        save(folder)
    if damage == "weights cut":
        (folder / "model.safetensors").write_bytes(b"\x10")
    if damage == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    with pytest.raises(InvalidInput, match="holds no model2vec model"):
        StaticEmbedder(folder)


def test_without_the_library_the_error_is_the_line_that_installs_it(tmp_path):
    program = (
        "import sys; sys.modules['model2vec'] = None\n"
        "from pathlib import Path; from conspectus.providers.static_embedder import StaticEmbedder\n"
        "from conspectus.errors import MissingExtra\n"
        "try: StaticEmbedder(Path('.'))\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pip install 'conspectus[static]'" in done.stdout
