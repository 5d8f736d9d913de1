"""What jobs share: where their tables come from, and how long ones are done in parts."""
