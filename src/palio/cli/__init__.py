"""Type it: one module a subcommand group."""
