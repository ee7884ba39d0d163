"""The commitment ledger: signal, hash, chain, replay and the rules of its nine operations (pure)."""
