"""Measure what a backfill of a big corpus costs, and what grows faster than the corpus.

    python -m benchmarks.scale run CORPUS HOME RESULTS.jsonl [--jobs N]
    python -m benchmarks.scale report RESULTS.jsonl

CORPUS is made by benchmarks.corpus; HOME is a new folder. `run` fills the home, asks it, fills it
again unchanged and with one changed month, and appends a JSON object to RESULTS after each part;
the home is kept. `report` prints the runs in RESULTS side by side, and from two sizes on the
exponent between the two biggest: 1 is linear. Processor seconds, of the backfill and of PostgreSQL,
are what to compare on a machine with other work; those of the encoder are left out.
"""
