"""The command `cobre`: an adapter over `cobre.study`, without logic of its own."""
