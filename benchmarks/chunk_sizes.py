"""Which chunk size finds best with one model: judged queries against in-memory vectors.

    python -m benchmarks.chunk_sizes ARCHIVES RELEVANCE [--dialect pg] [--precision int8]

ARCHIVES is a folder of mbox months; RELEVANCE one with queries.jsonl and
qrels.tsv (mail_assets/evaluation/judged.py). A message counts with its nearest chunk. The default
model is also run beyond the 256 tokens that it was published with, up to the 512 that its
position table has.
This is not search as users meet it, which has full text and threads.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.contenders import MODEL
from benchmarks.mail_chunks import chunks_of, messages
from mail_assets.encoding.local_encoder import LocalEncoder
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.models import find_local_model
from mail_assets.evaluation.judged import JudgedQuery, read_judged
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.evaluation.scores import MEASURES, Ranking, Score, score_ranking
from mail_assets.mail.message.message import Message
from mail_assets.processes.machine import count_physical_cores
from mail_assets.text.chunking import ChunkSizes

#: target, hard maximum, minimum, overlap; in tokens without [CLS] and [SEP].
CANDIDATES = (
    ChunkSizes(60, 192, 10, 10),
    ChunkSizes(100, 192, 20, 15),
    ChunkSizes(150, 192, 25, 25),
    ChunkSizes(200, 254, 30, 30),
    ChunkSizes(200, 254, 30, 0),
    ChunkSizes(240, 254, 30, 30),
    ChunkSizes(300, 380, 40, 40),
    ChunkSizes(400, 510, 50, 50),
)


def main() -> None:
    """Run every candidate and print a line for each as it ends."""
    parser = argparse.ArgumentParser(description="Measure chunk sizes on judged queries.")
    parser.add_argument("archives", type=Path)
    parser.add_argument("relevance", type=Path)
    parser.add_argument("--dialect", default="pg")
    parser.add_argument("--precision", default="int8")
    options = parser.parse_args()
    judged = read_judged(
        options.relevance / "queries.jsonl", options.relevance / "qrels.tsv", at_least=3
    )
    mail = list(messages(options.archives, options.dialect))
    print(f"{len(mail)} messages, {len(judged)} queries, {MODEL} {options.precision}")
    with tempfile.TemporaryDirectory() as cache:
        for number, sizes in enumerate(CANDIDATES):
            encoder = load(sizes, options.precision, Path(cache))
            row = pd.DataFrame([measure(mail, encoder, sizes, judged)])
            print(row.to_string(index=False, header=number == 0), flush=True)


def load(sizes: ChunkSizes, precision: str, cache: Path) -> LocalEncoder:
    """The default model, allowed texts as long as `sizes` makes them."""
    model = find_local_model(MODEL)
    graph = prepare_model(model, precision, cache)
    longer = replace(model, max_tokens=sizes.max_tokens + 2, sizes=sizes)
    return LocalEncoder(longer, precision, graph, count_physical_cores())


def measure(
    mail: Sequence[Message], encoder: LocalEncoder, sizes: ChunkSizes, judged: Sequence[JudgedQuery]
) -> dict[str, object]:
    """Encode everything at these sizes and rank all messages for every query."""
    chunks = [chunk for message in mail for chunk in chunks_of(message, encoder.tokenizer, sizes)]
    ids = sorted({chunk.message_id for chunk in chunks})
    number = {message_id: at for at, message_id in enumerate(ids)}
    owner = np.array([number[chunk.message_id] for chunk in chunks])
    vectors = encoder.encode_documents([chunk.text for chunk in chunks])
    scores = []
    for one in judged:
        nearest = np.full(len(ids), -1, np.float32)
        np.maximum.at(nearest, owner, vectors @ encoder.encode_query(one.text))
        ranking = [ids[at] for at in np.argsort(-nearest, kind="stable")[:50]]
        scores.append(score_ranking("semantic", one, Ranking(ranking, (), 0)))
    tokens = sum(chunk.tokens for chunk in chunks)
    return {
        "target": sizes.target,
        "max": sizes.max_tokens,
        "overlap": sizes.overlap,
        "chunks": len(chunks),
        "tokens": tokens,
        **{name: interval(scores, name) for name in MEASURES if name != "threads_10"},
    }


def interval(scores: Sequence[Score], name: str) -> str:
    """Mean and 95 % interval of one measure."""
    found = estimate_mean([getattr(one, name) for one in scores])
    return f"{found.mean:.3f} [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    main()
