"""An origin: what was published here, who reads it, and what is kept for whom."""
