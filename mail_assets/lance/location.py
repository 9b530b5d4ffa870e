"""Places of LanceDB tables: the part of a `lance:` URL after the scheme, a folder or s3://...

Settings check URLs at every start, so this module imports nothing of LanceDB.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit


def check_lance_path(path: str) -> None:
    """Check the path of a `lance:` URL, without opening anything.

    Raises:
        ValueError: with a short reason that never quotes a credential.
    """
    if path.startswith("s3://"):
        parts = urlsplit(path)
        if "@" in parts.netloc:
            raise ValueError("a lance: URL holds no credentials: set them in the environment")
        if not parts.netloc or parts.query:
            raise ValueError("use lance:s3://BUCKET/PREFIX, without options")
    elif not path or "://" in path or path.startswith("//"):
        raise ValueError("use lance:PATH (no slashes belong to the scheme) or lance:s3://...")


def lance_location(path: str, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the URI that LanceDB opens, and its storage options from the AWS_ variables."""
    if not path.startswith("s3://"):
        return str(Path(path).expanduser()), {}
    options = {name.lower(): text for name, text in environ.items() if name.startswith("AWS_")}
    endpoint = options.get("aws_endpoint_url_s3") or options.get("aws_endpoint_url", "")
    if endpoint:
        options["aws_endpoint"] = endpoint
        options["allow_http"] = str(endpoint.startswith("http://")).lower()
    return path, options
