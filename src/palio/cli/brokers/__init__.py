"""Commands that run one broker and set what it may do."""
