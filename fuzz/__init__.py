"""Fuzzing of every reader of foreign bytes: ``python fuzz/run.py --help``."""
