"""A ledger in PostgreSQL, for many machines: the same bytes, hashes and refusals as in the JSON Lines file.

The database driver is an extra (``pip install 'troth[postgres]'``) and is imported when a database is named.
"""
