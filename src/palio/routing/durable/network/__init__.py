"""Membership and messaging: which brokers there are, what they are asked, and how letters reach them."""
