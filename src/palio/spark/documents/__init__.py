"""XML documents in tables: their versions, values of paths, and what the present paths say of old ones."""
