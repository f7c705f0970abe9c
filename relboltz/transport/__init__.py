"""Streaming and forces: the (x, p) planes, their walls, and the ledger of escaped particles."""
