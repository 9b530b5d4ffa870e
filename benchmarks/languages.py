"""Measure if an encoder ranks the mail of the right topic first, in eight languages.

    python -m benchmarks.languages [--encoder multilingual-e5-small] [--precision int8]

languages.jsonl has ten topics in each language: a short mail, and two questions in other words.
A question is compared with the ten mails of its language, and with those of all languages.
`gap` is the similarity of a question to its mail, minus that to the nearest mail of another topic.
`unrelated` is the 95th percentile of its similarities to other topics. Both are means.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mail_assets.encoding.open import open_encoder
from mail_assets.settings.settings import load_settings

if TYPE_CHECKING:
    from mail_assets.encoding.open import Encoder

DATA = Path(__file__).with_name("languages.jsonl")


def judge(encoder: Encoder) -> pd.DataFrame:
    """Return a row for each language, with the number of questions that find their topic first."""
    lines = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    languages = np.array([line["language"] for line in lines])
    topics = np.array([line["topic"] for line in lines])
    mails = encoder.encode_documents([line["mail"] for line in lines])
    rows = []
    for line in lines:
        own, right = languages == line["language"], topics == line["topic"]
        for question in line["questions"]:
            found = mails @ encoder.encode_query(question)
            others = found[own & ~right]
            rows.append(
                {
                    "language": line["language"],
                    "questions": 1,
                    "first": int(topics[own][found[own].argmax()] == line["topic"]),
                    "first_of_all": int(topics[found.argmax()] == line["topic"]),
                    "own": found[own & right].max(),
                    "gap": found[own & right].max() - others.max(),
                    "unrelated": np.quantile(others, 0.95),
                }
            )
    columns = {"questions": "sum", "first": "sum", "first_of_all": "sum"}
    means = {"own": "mean", "gap": "mean", "unrelated": "mean"}
    table = pd.DataFrame(rows)
    return table.groupby("language", sort=False).agg(columns | means).reset_index()


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description="Judge an encoder in eight languages.")
    parser.add_argument("--encoder", default="multilingual-e5-small")
    parser.add_argument("--precision", default="int8")
    options = parser.parse_args()
    models = load_settings().model_cache
    table = judge(open_encoder(options.encoder, options.precision, models))
    print(table.round(3).to_string(index=False))
    print(table[["questions", "first", "first_of_all"]].sum().to_string())


if __name__ == "__main__":
    main()
