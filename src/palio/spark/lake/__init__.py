"""The lake: what journals held, as Parquet; written once, read by manifest, rewritten by new versions."""
