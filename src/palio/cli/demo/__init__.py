"""`palio demo`."""
