"""Simulated faults: brokers that crash, disks that fill, links that break, clients that come and go."""
