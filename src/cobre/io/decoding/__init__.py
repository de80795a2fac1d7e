"""JSON documents and Parquet tables of a case as typed records and columns."""
