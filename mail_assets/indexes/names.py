"""Names of the mail's indexes, in their bucket and in the tables.

Another name is another index, which is filled next to the live one and then replaces it. So a name
includes what determines the entries: the encoder, or the version of the words.
"""

from mail_assets.encoding.models import compute_fingerprint, short_name

#: Raise it when the metadata of vectors changes: no backend can alter an index.
VECTORS_VERSION = "2"


def index_name(encoder: str, precision: str) -> str:
    """Return the name of an encoder's vector index; it has at most 45 characters."""
    return f"mail{VECTORS_VERSION}-{short_name(encoder)}-{compute_fingerprint(encoder, precision)}"


def is_word_index(name: str) -> bool:
    """Return whether a name belongs to a word index, of any version."""
    return name.startswith("words-")


def manifest_name(url: str, name: str) -> str:
    """Return the name of an index in its manifest: URL and name, unique across buckets."""
    return f"{url} {name}"


def split_manifest_name(name: str) -> tuple[str, str]:
    """Return the URL and the index name that `manifest_name` joined."""
    url, _, index = name.rpartition(" ")
    return url, index
