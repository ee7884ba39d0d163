"""Stores: the JSON Lines ledger file with its lock, durability and recovery."""
