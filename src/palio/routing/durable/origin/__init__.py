"""An origin: its journal, with deduplication and confirmation of publishes, readers, and retention."""
