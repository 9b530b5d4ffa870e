"""Measure the cost of a backfill of a big corpus, and figures that grow faster than the corpus.

    python -m benchmarks.scale run CORPUS HOME RESULTS.jsonl [--jobs N]
    python -m benchmarks.scale report RESULTS.jsonl

benchmarks.corpus makes CORPUS; HOME is a new folder. `run` fills the home, searches it, and fills
it again: unchanged, and with one changed month. After each part it appends a JSON object to
RESULTS. The home is kept. `report` prints the runs in RESULTS side by side; with two or more
sizes, also the exponent of the growth between the two biggest: 1 is linear. On a machine with other
work, compare processor seconds, which include PostgreSQL. Vectors are static, so that the time of
the model is left out.
"""
