"""Commands that publish events and take them."""
