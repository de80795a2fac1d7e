"""The report of a run as one HTML file, and figures for notebooks. It reads only files and tables."""
