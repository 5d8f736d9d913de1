"""Reconfiguration: what becomes of the rows of a link that is lost, and what a new link is told."""
