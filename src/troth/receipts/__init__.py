"""The done receipt: records, cases and policies, the three checks, verdict and statements (pure).

Everything here works on bytes that a `Member` hands over and answers with plain values; nothing reads a file, a
clock or the environment. Section numbers are those of the done-record rules.
"""
