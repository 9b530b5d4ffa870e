"""Answers to questions: passages of mail, or the text of a chat model with citations."""
