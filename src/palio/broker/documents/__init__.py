"""XML documents at a broker: how they are published, and what is known of them."""
