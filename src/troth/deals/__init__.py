"""The bilateral deal: messages, machine, escrow, checker, transcripts that replay (pure).

A simulable protocol object, experimental and non-transfer: nothing here binds anyone, moves money or shows that a deal
would hold in the world (source §8). Bytes and plain values in, decisions out; nothing reads a file, a clock or the
environment. Section numbers are those of the deal rules; "source" is the protocol's own text.
"""
