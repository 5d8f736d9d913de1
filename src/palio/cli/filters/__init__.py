"""Commands about filters and patterns, most of them without a broker."""
