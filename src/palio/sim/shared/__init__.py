"""Shared records in a world in which links break, brokers crash and disks fill: whether all come to agree."""
