"""What durable delivery costs: messages, bytes, journal reads and time, with and without an outage."""
