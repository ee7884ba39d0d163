"""Ground: strict JSON in, canonical JSON out, digests, errors, ids and instants."""
