"""Commands for several brokers, and for looking into those that run."""
