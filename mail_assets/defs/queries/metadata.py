"""The metadata of a run of test queries."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from mail_assets.defs.queries.markdown import answer_markdown
from mail_assets.defs.queries.tables import hit_table, place_table, search_table
from mail_assets.search.response import Response


def response_metadata(responses: Sequence[Response]) -> dict[str, Any]:
    """Return responses as the UI shows them, numbered from 1 in the order asked.

    The UI shows the beginning of long metadata, so what is read first comes first.
    """
    numbered = [*enumerate(responses, 1)]
    metadata: dict[str, Any] = {"queries": len(responses)}
    metadata |= {f"answer_{n}": dg.MetadataValue.md(answer_markdown(one)) for n, one in numbered}
    metadata["searches"] = search_table(responses)
    for n, one in numbered:
        metadata |= {
            f"hits_{n}": hit_table(one),
            f"places_{n}": place_table(one),
            f"explain_{n}": dg.MetadataValue.json(dict(one.explain or {})),
        }
    return metadata
