"""`palio spark`."""
