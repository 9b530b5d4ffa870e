"""Benchmarks that anyone can run; each states the machine, the data and the command."""
