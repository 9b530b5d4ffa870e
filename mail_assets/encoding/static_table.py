"""The table of the precision `static`: one weighted vector for each word piece of a model.

The rows are the model's own input embeddings, so the table is made from the published weights
alone: no text is encoded for it and nothing is fetched. Their common component is taken out, and a
row is weighted by how rare its piece is (smooth inverse frequency: Arora, Liang and Ma 2017, "A
simple but tough-to-beat baseline for sentence embeddings"). Frequencies are Zipf's, by the piece's
place in the vocabulary, which WordPiece and SentencePiece sort by frequency (as in model2vec).
"""

import io

import numpy as np
import numpy.typing as npt

#: The name of the word embeddings in the state dict of a BertModel.
TENSOR = "embeddings.word_embeddings.weight"
#: SIF's `a`: a piece of this probability weighs half of one that never occurs. The paper has 1e-3
#: to 1e-4 for whole words; pieces are fewer, and BERT's first word has place 1,996.
SMOOTHING = 1e-5

Floats = npt.NDArray[np.float32]


def build_table(embeddings: Floats) -> Floats:
    """The table of a vocabulary's input embeddings, both of shape (pieces, dimension)."""
    ranks = np.arange(1, len(embeddings) + 1)
    probabilities = 1 / (ranks * np.sum(1 / ranks))
    weights = SMOOTHING / (SMOOTHING + probabilities)
    exact = embeddings.astype(np.float64)
    return np.asarray((exact - exact.mean(axis=0)) * weights[:, None], np.float32)


def serialise_table(table: Floats) -> bytes:
    """The table in NumPy's file format."""
    buffer = io.BytesIO()
    np.save(buffer, table)
    return buffer.getvalue()
