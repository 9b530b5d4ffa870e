"""The tokenizer of a local model, its special tokens, and how much of a text it does not know."""

from tokenizers import Tokenizer

from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import LocalModel


def load_tokenizer(model: LocalModel) -> Tokenizer:
    """The model's tokenizer, without the truncation and padding that its file may ask for."""
    tokenizer = Tokenizer.from_file(str(verify_file(model.source, model.files.tokenizer)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def unknown_share(text: str, tokenizer: Tokenizer) -> float:
    """Return the share of the tokens with letters that a tokenizer does not know, 0 to 1.

    It is high in scripts that the model has never read: a text of them is near to any other.
    """
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
    if unknown is None:  # it takes bytes apart
        return 0.0
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids = [
        token
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if any(map(str.isalpha, text[start:end]))
    ]
    return ids.count(unknown) / len(ids) if ids else 0.0


def special_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids of the special tokens before a text, as [CLS], and of those behind it, as [SEP]."""
    encoding = tokenizer.encode("a")
    marks = encoding.special_tokens_mask
    first, last = marks.index(0), len(marks) - marks[::-1].index(0)
    return encoding.ids[:first], encoding.ids[last:]
