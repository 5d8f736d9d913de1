"""Durable delivery, which outlives crashes: journals at origins, homes, and how they agree."""
