"""Who is linked with whom: brokers that choose their links themselves, and find new ones for lost ones."""
