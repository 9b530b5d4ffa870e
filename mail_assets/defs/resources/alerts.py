"""The webhook that failures are posted to."""

import dagster as dg
from pydantic import Field

from mail_assets.http.webhook import post_message


class AlertsResource(dg.ConfigurableResource):
    """A webhook that takes messages in Slack's format."""

    url: str = Field(default="", description="MAIL_ALERT_URL; empty: nothing is posted")
    ui_url: str = Field(default="", description="MAIL_UI_URL, for links to runs")

    def post(self, text: str) -> None:
        """Post a text in Slack's markup.

        Raises:
            WebhookError: it was not accepted.
        """
        post_message(self.url, text)

    def run_link(self, run_id: str) -> str:
        """Return a run's short id, as a link where the UI's URL is known."""
        label = f"run {run_id[:8]}"
        return f"<{self.ui_url}/runs/{run_id}|{label}>" if self.ui_url else label
