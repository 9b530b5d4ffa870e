"""Models of the Hugging Face Hub, at a pinned commit.

The bytes are verified at every use (model_files.py), not only after a fetch.
"""

from dataclasses import dataclass
from pathlib import Path

from mail_assets.encoding.model_files import ModelFileError


@dataclass(frozen=True)
class HubSource:
    """A model repository of the Hub at one commit, kept in the Hub's own cache.

    `huggingface_hub` fetches, so what it reads from the environment holds: HF_ENDPOINT (a
    mirror), HF_HOME, HF_HUB_OFFLINE, HF_TOKEN. It resumes broken downloads, obeys 429 with
    Retry-After, and two processes never spoil each other's file; a 5xx in the middle is an
    error. A file that the cache holds at this commit is used without asking the Hub.
    """

    repository: str
    commit: str

    def locate(self, path: str) -> Path:
        """The file's place in the cache, fetched where it is missing.

        Raises ModelFileError where it cannot be had.
        """
        # Imported here: 0.1 s that a packaged model does without.
        from huggingface_hub import hf_hub_download, try_to_load_from_cache

        # Asked first because hf_hub_download may speak to the Hub for a file that is there too.
        cached = try_to_load_from_cache(self.repository, path, revision=self.commit)
        if isinstance(cached, str):
            return Path(cached)
        try:
            return Path(hf_hub_download(self.repository, path, revision=self.commit))
        # Of any type: it lets through OSError, ValueError, and the errors of hf-xet and of the
        # HTTP library, which is another one from release to release.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ModelFileError(
                f"{path}: cannot be had from {self.repository} at {self.commit}: "
                f"{type(error).__name__}: {reason} To get the file: {self.remedy(path)}"
            ) from error

    def remedy(self, path: str) -> str:
        """Fetch over whatever is in the cache."""
        return (
            f"hf download {self.repository} {path} --revision {self.commit} --force-download "
            "(through a mirror: set HF_ENDPOINT)"
        )
