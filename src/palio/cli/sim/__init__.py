"""`palio sim`."""
