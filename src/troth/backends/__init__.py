"""Backends: reviewers reached through command lines and HTTP, with consent, under supervision (Impasse §9, §10)."""
