"""The done receipt: records, cases and policies, the three checks, verdict and statements (pure)."""
