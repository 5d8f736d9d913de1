"""Looking back: history, what filters would have delivered, subscriptions that reach into the past."""
