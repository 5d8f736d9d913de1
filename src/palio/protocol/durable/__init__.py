"""What durable delivery says on the wire: of clients, to them, and between brokers."""
