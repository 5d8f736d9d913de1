"""The broker process: the routing core on real sockets and a real store."""
