"""An origin: its journal, deduplication and confirmation of what is published here, its readers, and retention."""
