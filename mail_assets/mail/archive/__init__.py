"""Archives: decompression, From_ lines, and the raw messages of an mbox."""
