"""Worker processes, and what this process knows about itself and its machine."""
