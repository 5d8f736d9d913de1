"""Try it: a deterministic simulator around the routing core."""
