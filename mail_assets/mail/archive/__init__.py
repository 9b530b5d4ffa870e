"""The begin of each message in an archive: decompression, From_ lines, raw messages of an mbox."""
