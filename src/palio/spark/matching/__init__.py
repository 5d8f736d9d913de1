"""Bulk matching: many events, many subscriptions, all at once or what is new each day."""
