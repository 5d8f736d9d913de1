"""Run it: the routing core in a process of its own, on real sockets and a real store."""
