"""From text to vectors: encoders of local models (ONNX Runtime) and of models on a server.

`open` gives either by name. Local: local_model, model_catalog, model_files, hub, graph,
model_cache, providers, local_encoder. Remote: remote_model, embeddings, remote_encoder.
"""
