"""From text to vectors: model profiles, model files, graph preparation, the ONNX session.

Nothing here knows Dagster, SQL or the vector bucket.
"""
