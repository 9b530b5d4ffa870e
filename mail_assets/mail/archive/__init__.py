"""Mbox archives: decompression, From_ lines and raw messages."""
