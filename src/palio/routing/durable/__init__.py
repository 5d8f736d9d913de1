"""Delivery that outlives crashes: journals at the origins, homes of durable subscriptions, and how they agree."""
