"""Recorded logs: rows of CSV, JSON lines and Parquet files, and what their columns mean."""
