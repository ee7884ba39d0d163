"""troth: the commitment ledger, the done receipt, and the airlock where they meet."""

__version__ = "0.1.0"
