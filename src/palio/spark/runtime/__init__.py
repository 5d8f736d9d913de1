"""Where it runs: sessions and their Java, what machines must have, what executors are given, tasks, workers."""
