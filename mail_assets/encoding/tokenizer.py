"""The tokenizer of a local model, and the special tokens that it puts around a text."""

from tokenizers import Tokenizer

from mail_assets.encoding.local_model import LocalModel
from mail_assets.encoding.model_files import verify_file


def load_tokenizer(model: LocalModel) -> Tokenizer:
    """The model's tokenizer, without the truncation and padding that its file may ask for."""
    tokenizer = Tokenizer.from_file(str(verify_file(model.source, model.files.tokenizer)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def special_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids of the special tokens before a text, as [CLS], and of those behind it, as [SEP]."""
    encoding = tokenizer.encode("a")
    marks = encoding.special_tokens_mask
    first, last = marks.index(0), len(marks) - marks[::-1].index(0)
    return encoding.ids[:first], encoding.ids[last:]
