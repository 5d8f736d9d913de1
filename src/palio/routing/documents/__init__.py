"""Current documents: which version counts, how those of others are kept, and where subscriptions begin."""
