"""A tree of brokers whose links are replaced, and whose brokers die: what each protocol makes of it."""
