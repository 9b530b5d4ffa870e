"""An archive file taken apart: decompression, From_ lines, single messages as bytes."""
