"""The assets: thin functions over the steps (steps/), and the metadata that the UI shows."""
