"""Patterns: what is said about several events together. `pattern.Pattern` is what users hold in their hands."""
