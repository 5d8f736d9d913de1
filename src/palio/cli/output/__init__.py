"""How things are shown in a terminal, and where they are left."""
