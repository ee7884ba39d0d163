"""The airlock: ties what receipts and people decide to the ledger."""
