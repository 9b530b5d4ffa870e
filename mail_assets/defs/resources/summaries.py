"""What makes summaries of threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from pydantic import Field

from mail_assets.summaries.maker import ExtractiveMaker, Maker


class SummariesResource(dg.ConfigurableResource):
    """Opens the maker of summaries."""

    maker: str = Field(default="extractive", description="what makes summaries: extractive")

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides what is made of the same messages."""
        return ExtractiveMaker().fingerprint

    @contextmanager
    def open(self) -> Iterator[Maker]:
        """Yield the maker."""
        yield ExtractiveMaker()
