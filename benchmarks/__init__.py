"""Measurements, each beside a yardstick of the same run."""
