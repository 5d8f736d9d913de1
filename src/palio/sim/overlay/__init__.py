"""Brokers that choose their links themselves, simulated: any two can connect, and everything goes wrong."""
