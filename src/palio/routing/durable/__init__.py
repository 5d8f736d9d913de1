"""Delivery that outlives crashes: journals at origins, homes of subscriptions, and how they agree."""
