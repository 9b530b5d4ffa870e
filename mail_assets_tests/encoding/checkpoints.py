"""Small BERT checkpoints of random weights: the three files that a model pins, as published."""

import hashlib
import json
from pathlib import Path

import numpy as np
import safetensors.numpy
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from mail_assets.encoding.checkpoint import BertConfig
from mail_assets.encoding.model_files import ModelFile, ModelFiles, ModelSource
from mail_assets.encoding.models import LocalModel, Pooling
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets_tests.encoding.bert import TINY, random_weights

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{letter}" for letter in LETTERS[:20])]


def checkpoint(
    config: BertConfig = TINY, *, seed: int = 0, half: bool = False, pooler: bool = True
) -> dict[str, bytes]:
    """The files' bytes by path; `half` stores float16, `pooler` adds the unused layer of BERT."""
    weights = dict(random_weights(config, seed))
    if half:
        weights = {name: values.astype(np.float16) for name, values in weights.items()}
    size, kind = config["hidden_size"], np.float16 if half else np.float32
    extra = {"embeddings.position_ids": np.arange(config["max_position_embeddings"])[None]}
    if pooler:
        extra["pooler.dense.weight"] = np.ones((size, size), kind)
        extra["pooler.dense.bias"] = np.ones(size, kind)
    return {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": safetensors.numpy.save({**weights, **extra}),
        "tokenizer.json": tokenizer().to_str().encode(),
    }


def tokenizer() -> Tokenizer:
    """WordPiece over single letters, truncating and padding as published files do."""
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_truncation(8)
    made.enable_padding(length=8)
    return made


def model(
    files: dict[str, bytes],
    source: ModelSource,
    *,
    name: str = "tiny",
    pooling: Pooling = "mean",
    config: BertConfig = TINY,
) -> LocalModel:
    """A local model that pins exactly these bytes."""
    pinned = {
        path: ModelFile(path, hashlib.sha256(body).hexdigest()) for path, body in files.items()
    }
    return LocalModel(
        name=name,
        dimension=config["hidden_size"],
        max_tokens=config["max_position_embeddings"],
        pooling=pooling,
        query_prefix="",
        document_prefix="",
        sizes=ChunkSizes(target=10, max_tokens=18, min_tokens=2, overlap=2),
        files=ModelFiles(
            pinned["model.safetensors"], pinned["config.json"], pinned["tokenizer.json"]
        ),
        source=source,
    )


def write(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for path, body in files.items():
        (folder / path).write_bytes(body)
    return folder
