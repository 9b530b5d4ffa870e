"""LanceDB tables in a folder or on S3-like storage: the common part of both Lance indexes.

A place is the part of a `lance:` URL after the scheme. Settings check URLs at every start, so
nothing of LanceDB is imported here.
"""

import sys
from collections.abc import Mapping
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from urllib.parse import urlsplit

from mail_assets.environment import set_default

# LanceDB logs to standard error and reads this variable once, at import. Two modules warn that an
# index of similar vectors has fewer partitions than planned, which is harmless. Other warnings are
# shown. A value set by the user stays.
set_default(
    "LANCEDB_LOG", "warn,lance_index::vector::kmeans=error,lance::index::vector::builder=error"
)


def _put_off(name: str) -> None:
    """Delay the `__init__` of a package until one of its own names is used.

    Modules of the package can be imported before.
    """
    spec = find_spec(name)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    loader, package = spec.loader, module_from_spec(spec)

    def load(attribute: str) -> object:
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = load
    sys.modules[name] = package


# LanceDB needs only the models of this package. Its `__init__` imports clients of a server, which
# takes half a second of processor time.
_put_off("lance_namespace_urllib3_client")


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
