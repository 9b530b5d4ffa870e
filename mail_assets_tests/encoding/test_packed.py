"""A packed checkpoint gives the weights, pieces and vectors that it was written from."""

import struct
from pathlib import Path

import numpy as np
import pytest

from mail_assets.encoding import checkpoint as packed
from mail_assets.encoding.checkpoint import BertConfig, load_tokenizer, special_ids, unknown_share
from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.encoding.model_files import FolderSource, ModelFile, ModelFileError, ModelFiles
from mail_assets.encoding.models import (
    ALL_MINILM_L6_V2,
    LOCAL_MODELS,
    MULTILINGUAL_E5_SMALL,
    LocalModel,
    advise_language,
)
from mail_assets.files import digest_file
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import chunk_body
from mail_assets.text.tokens import encode_ids, tokenise
from mail_assets_tests.encoding.bert import Floats, random_weights, reference

SMALL: BertConfig = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "max_position_embeddings": 40,
    "layer_norm_eps": 1e-12,
}
# 50 pieces, as many as random_weights has words
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁mail", "▁list", "s", "検索", "メール", "▁кто", "é"]
PIECES = [*WORDS, *(chr(ord("a") + n) for n in range(18)), *map(str, range(10)), *"⚓☂☃☄★☆☇☈☉☊"]
SHORT = {full: short for short, full in packed._LAYER.items()}


def shorten(name: str) -> str:
    """The name that a tensor has in a packed file."""
    for short, full in packed._EMBEDDINGS.items():
        if full == name:
            return short
    _, _, layer, *middle, ending = name.split(".")
    return f"l{layer}.{SHORT['.'.join(middle)]}.{ending[0]}"


def pack(weight: Floats) -> tuple[bytes, Floats]:
    """The blocks of a weight, and its values after 4 bits, one by one."""
    content, values = b"", []
    for block in weight.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        numbers = [min(15, max(0, round(float(x) / float(scale)) + 8)) for x in block]
        halves = bytes(numbers[i] | numbers[i + 16] << 4 for i in range(16))
        content += scale.tobytes() + halves
        values += [(number - 8) * float(scale) for number in numbers]
    return content, np.array(values, np.float32).reshape(weight.shape)


def write(path: Path) -> dict[str, Floats]:
    """Write a packed file of random weights; return them as they are after 4 bits."""
    weights = random_weights(SMALL, 5, spread=0.3)
    assert len(PIECES) == len(weights["embeddings.word_embeddings.weight"])
    blob = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, blob)]).astype("<u4")
    scores = -np.arange(len(PIECES), dtype="<f4") / 10
    head = struct.pack("<4sI7ifi", b"E5S1", 1, 32, 2, 4, 128, len(PIECES), 40, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(ends[-1]))
    head += ends.tobytes() + scores.tobytes() + b"".join(blob)
    head += struct.pack("<iIIB", 1, 5, 0x0B, 0)  # a table of one replaced character
    tensors, exact = [], {}
    for name, values in weights.items():
        short = shorten(name).encode()
        is_packed = (short.endswith(b".w") and b"ln." not in short) or short == b"emb.word"
        content, exact[name] = pack(values) if is_packed else (values.tobytes(), values)
        tensors.append((short, is_packed, values.size, content))
    size = len(head) + 4 + sum(2 + len(short) + 21 for short, *_ in tensors)
    head, body = head + struct.pack("<i", len(tensors)), b""
    for short, is_packed, count, content in tensors:
        place = struct.pack("<BIQQ", is_packed, count, size + len(body), len(content))
        head, body = head + struct.pack("<H", len(short)) + short + place, body + content
    path.write_bytes(head + body)
    return exact


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LocalModel, dict[str, Floats]]:
    folder = tmp_path / "small"
    folder.mkdir()
    exact = write(folder / "weights.bin")
    file = ModelFile("weights.bin", digest_file(folder / "weights.bin"))
    model = LocalModel(
        name="small",
        dimension=32,
        max_tokens=40,
        pooling="mean",
        query_prefix="a ",
        document_prefix="b ",
        sizes=ChunkSizes(target=16, max_tokens=30, min_tokens=4, overlap=4),
        files=ModelFiles(file, file, file),
        source=FolderSource(folder, MULTILINGUAL_E5_SMALL.source),
        centred=True,
        english=False,
    )
    monkeypatch.setitem(LOCAL_MODELS, "small", model)
    return model, exact


def test_weights_and_configuration_are_those_written(tmp_path: Path) -> None:
    exact = write(tmp_path / "weights.bin")
    found = packed.read_weights(tmp_path / "weights.bin")
    assert found.keys() == exact.keys()
    for name, values in exact.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)
    config = packed.read_config(tmp_path / "weights.bin")
    assert config == {**SMALL, "layer_norm_eps": pytest.approx(1e-12)}


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelFileError, match=r"weights\.bin.*not a packed checkpoint"):
        packed.read_config(tmp_path / "weights.bin")


@pytest.mark.parametrize(
    ("text", "pieces", "starts"),
    [
        ("", [], []),
        ("mail lists", ["▁mail", "▁list", "s"], [0, 5, 9]),
        ("  mail\n\n\tlist ", ["▁mail", "▁list"], [2, 9]),
        ("mail\u200blist", ["▁mail", "▁list"], [0, 5]),  # a blank of width zero
        ("ma\x01il", ["▁mail"], [0]),  # a dropped character
        ("ｍａｉｌ", ["▁mail"], [0]),  # full width
        ("メール検索", ["▁", "メール", "検索"], [0, 0, 3]),
        ("кто", ["▁кто"], [0]),
        ("cafe\u0301", ["▁", "c", "a", "f", "é"], [0, 0, 1, 2, 3]),
        ("mail 山", ["▁mail", "▁", "<unk>"], [0, 5, 5]),
    ],
)
def test_texts_are_cut_into_pieces(
    small: tuple[LocalModel, object], text: str, pieces: list[str], starts: list[int]
) -> None:
    tokenizer = load_tokenizer(small[0])
    encoding = tokenizer.encode(text, add_special_tokens=False)
    assert [PIECES[i] for i in encoding.ids] == pieces
    assert [start for start, _ in encoding.offsets] == starts
    assert encode_ids([text], tokenizer) == [encoding.ids]
    assert len(tokenise(text, tokenizer).words) == len(pieces)
    assert special_ids(tokenizer) == ([0], [2])


def test_unknown_letters_are_counted(small: tuple[LocalModel, object]) -> None:
    tokenizer = load_tokenizer(small[0])
    assert unknown_share("mail list", tokenizer) == 0
    assert unknown_share("mail 山川", tokenizer) == pytest.approx(1 / 3, abs=0.2)


@pytest.mark.parametrize(
    "text", ["メール検索" * 300, "mail lists\n" * 300, "кто mail " * 300, "山検索" * 300]
)
def test_chunks_fit_and_cover_the_text(small: tuple[LocalModel, object], text: str) -> None:
    tokenizer = load_tokenizer(small[0])
    sizes = ChunkSizes(target=160, max_tokens=200, min_tokens=20, overlap=20)
    chunks = chunk_body(text, [(0, len(text))], "", tokenizer, sizes).chunks
    assert len(chunks) > 1
    for chunk in chunks:
        assert len(tokenizer.encode(chunk.text).ids) <= sizes.max_tokens + 2
    assert {*"".join(chunk.text for chunk in chunks)} == {*text.strip()}


@pytest.mark.parametrize(("precision", "nearest"), [("fp32", 0.99999), ("int8", 0.99)])
def test_vectors_are_centred(
    small: tuple[LocalModel, dict[str, Floats]], tmp_path: Path, precision: str, nearest: float
) -> None:
    exact = small[1]
    encoder = open_local_encoder("small", precision, tmp_path, threads=1)
    texts = ["mail lists", "メール検索", "кто", "a b c d e", "0123"]
    found = encoder.encode_documents(texts)
    ids = [encoder.tokenizer.encode(f"b {text}").ids for text in texts]
    plain = np.array([reference(SMALL, exact, "mean", one) for one in ids])
    # The same mean is subtracted from all: it is found again from two of them.
    lengths = np.linalg.lstsq(
        np.concatenate([found.T[:, i : i + 1] for i in (0, 1)], axis=1),
        plain[0] - plain[1],
        rcond=None,
    )[0] * [1, -1]
    centre = plain[0] - lengths[0] * found[0]
    centred = plain - centre
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    assert (centred * found).sum(axis=1).min() > nearest


@pytest.mark.parametrize(("name", "languages", "advised"), [
    (ALL_MINILM_L6_V2.name, ["english"], False),
    (ALL_MINILM_L6_V2.name, ["english", "simple"], False),
    (ALL_MINILM_L6_V2.name, ["german", "english"], True),
    ("gte-small", ["russian"], True),
    (MULTILINGUAL_E5_SMALL.name, ["german"], False),
    ("openai:any@https://api.example.org/v1", ["german"], False),
])  # fmt: skip
def test_english_model_is_advised_against(name: str, languages: list[str], advised: bool) -> None:
    advice = advise_language(name, languages)
    assert bool(advice) == advised
    if advised:
        assert "MAIL_ENCODER=multilingual-e5-small" in advice
