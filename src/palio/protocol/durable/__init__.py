"""The messages of durable delivery: of clients, to them, and between brokers."""
