"""Answers: passages of the mail that search finds, or a chat model's words, cited."""
