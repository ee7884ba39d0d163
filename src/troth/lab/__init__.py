"""The laboratory of deals: policies, suites, sweeps, statistics. Every result is `experimental` and `non-transfer`."""
