"""Answers: a chat model answers from the excerpts that search finds; its citations are checked."""
