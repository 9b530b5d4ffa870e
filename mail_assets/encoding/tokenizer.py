"""The tokenizer of a local model: loading, special tokens, share of unknown tokens in a text."""

from tokenizers import Tokenizer

from mail_assets.encoding import packed
from mail_assets.encoding.model_files import verify_file
from mail_assets.encoding.models import LocalModel


def load_tokenizer(model: LocalModel) -> Tokenizer:
    """Load the model's tokenizer, without the truncation and padding that its file may set."""
    path = verify_file(model.source, model.files.tokenizer)
    if path.suffix == packed.SUFFIX:
        return packed.read_tokenizer(path)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def unknown_share(text: str, tokenizer: Tokenizer) -> float:
    """Return the share of unknown tokens among those with letters, 0 to 1.

    It is high in scripts that the model was not trained on; vectors of such texts are all alike.
    """
    names = (getattr(tokenizer.model, "unk_token", None) or "", "[UNK]", "<unk>")
    unknown = next((i for i in map(tokenizer.token_to_id, names) if i is not None), None)
    if unknown is None:  # a byte-level tokenizer knows everything
        return 0.0
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids = [
        token
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if any(map(str.isalpha, text[start:end]))
    ]
    return ids.count(unknown) / len(ids) if ids else 0.0


def special_ids(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens before a text, as [CLS], and after it, as [SEP]."""
    encoding = tokenizer.encode("a")
    marks = encoding.special_tokens_mask
    first, last = marks.index(0), len(marks) - marks[::-1].index(0)
    return encoding.ids[:first], encoding.ids[last:]
