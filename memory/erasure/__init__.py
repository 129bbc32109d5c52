"""Erasure: what is removed for good, in two stages, with a receipt, a ledger and legal holds."""
