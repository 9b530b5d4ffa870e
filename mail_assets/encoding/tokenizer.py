"""The tokenizer of a local model."""

from tokenizers import Tokenizer

from mail_assets.encoding.local_model import LocalModel
from mail_assets.encoding.model_files import verify_file


def load_tokenizer(model: LocalModel) -> Tokenizer:
    """The model's tokenizer, without the truncation and padding that its file may ask for."""
    tokenizer = Tokenizer.from_file(str(verify_file(model.source, model.files.tokenizer)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
