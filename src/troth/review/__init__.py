"""The Impasse review: documents, anchors, the machine of each finding and the outcome of a run.

A protocol package: bytes and records in, decisions out. No file, process, clock or terminal is touched here.
"""
