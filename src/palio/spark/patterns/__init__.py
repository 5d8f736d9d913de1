"""Patterns over several events, in a table or in a stream."""
