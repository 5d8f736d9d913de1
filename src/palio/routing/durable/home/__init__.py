"""A home: the durable subscriptions that live here, what they have to deliver, and to which takers."""
