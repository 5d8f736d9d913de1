"""Commands about XML documents."""
