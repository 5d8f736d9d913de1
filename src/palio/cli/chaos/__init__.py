"""`palio chaos`."""
