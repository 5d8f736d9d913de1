"""The lake from below: its manifests, its errors, and its events in the order of their journal.

Spark writes lakes (`palio.spark`). What is here needs no Spark, and but for `events` no Arrow: a broker reads
with it what its journal does not have any more.
"""
