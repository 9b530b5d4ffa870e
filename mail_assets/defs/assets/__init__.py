"""The assets: thin functions that call steps (steps/), and the metadata that the UI shows."""
