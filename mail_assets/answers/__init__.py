"""Answers: sentences of the mail that search finds, or a chat model's words about it, cited."""
