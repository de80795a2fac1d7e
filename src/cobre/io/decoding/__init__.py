"""Decoding of JSON documents and Parquet tables into typed records and columns."""
