"""LanceDB tables in a folder or on S3-like storage: the common part of both Lance indexes."""

import sys
from importlib.util import find_spec, module_from_spec

from mail_assets.environment import set_default

# LanceDB logs to standard error and reads this variable once, at import. Two modules warn that an
# index of similar vectors has fewer partitions than planned, which is harmless; other warnings are
# shown. The user's own value stays.
set_default(
    "LANCEDB_LOG", "warn,lance_index::vector::kmeans=error,lance::index::vector::builder=error"
)


def _put_off(name: str) -> None:
    """Have a package run its `__init__` when its own names are first asked for, not before.

    Its modules can be imported meanwhile.
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


# LanceDB needs models of it alone. The clients of a server, which it imports by itself, take half a
# second of the processor.
_put_off("lance_namespace_urllib3_client")
