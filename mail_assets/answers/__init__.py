"""Answers in words: a chat model over what search finds, with citations that are checked."""
