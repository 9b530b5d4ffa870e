"""Encoders: from texts to vectors, by a model on this machine or on a server.

`open.py` opens either by its name. On this machine: `models.py` (names and fingerprints),
`model_files.py` (verified files), `checkpoint.py` (their content), `model_build.py` and
`model_cache.py` (the prepared file), `local_encoder.py` and `static_encoder.py`. On a server:
`remote_encoder.py`.
"""
