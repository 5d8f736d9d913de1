"""Durable delivery: journals at origins, homes of durable subscriptions, and how they agree; it outlives
crashes.
"""
