"""What the steps work with: the mail database and the store, opened together."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from pydantic import Field

from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.store import StoreResource
from mail_assets.steps.worker_pool import WorkerPool
from mail_assets.workspace import Workspace


class WorkspaceResource(dg.ConfigurableResource):
    """Opens the workspace of a step."""

    database: DatabaseResource
    store: StoreResource
    samples: bool = Field(
        default=True, description="MAIL_SAMPLES; whether a few rows are shown with each month"
    )

    jobs: int = Field(default=1, description="MAIL_JOBS; processes that compute for a step")

    @contextmanager
    def open(
        self, context: dg.AssetExecutionContext | dg.OpExecutionContext
    ) -> Iterator[Workspace]:
        """Yield the workspace of a run; its connection carries the name of the asset or the op."""
        is_op = isinstance(context, dg.OpExecutionContext)
        role = context.op.name if is_op else context.asset_key.path[-1]
        with (
            self.database.connect(role, context.run.run_id) as connection,
            WorkerPool(self.jobs) as workers,
        ):
            yield Workspace(
                connection, self.store.open(), context.log.info, self.database.key_source, workers
            )
