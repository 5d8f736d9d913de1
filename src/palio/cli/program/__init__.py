"""How the program starts, finds its commands and its broker, speaks and ends."""
