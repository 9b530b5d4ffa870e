"""Encoders: from texts to vectors, by a model on this machine or on a server.

`open.py` opens either by its name. On this machine: `models.py` (names and fingerprints),
`model_files.py` (verified files), `packed.py` (their packed form), `model_cache.py`,
`model_build.py` and `smoothing.py` (prepared files),
`local_encoder.py` and `static_encoder.py`. On a server: `remote_encoder.py`.
"""
