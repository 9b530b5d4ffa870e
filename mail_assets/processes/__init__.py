"""Worker processes, and facts about this process and its machine."""
