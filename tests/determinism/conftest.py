"""Put this folder on the path: the matrix is also a program."""
