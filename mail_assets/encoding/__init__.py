"""Encoders: turn texts into vectors with a model on this machine or on a server.

`open.py` opens an encoder by name. `models.py` has names and fingerprints. For models on this
machine: `model_files.py` (verified files), `checkpoint.py` (their content), `model_build.py` and
`model_cache.py` (the prepared file), `local_encoder.py` and `static_encoder.py`. For models on a
server: `remote_encoder.py`.
"""
