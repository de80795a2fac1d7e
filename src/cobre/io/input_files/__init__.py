"""The input files of a case, decoded into the records of `cobre.core`; a module for each file or group of files."""
