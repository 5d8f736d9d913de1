"""What jobs share: where their tables of events come from, and how long looks at them are taken in parts."""
