"""`palio bench`."""
