"""One file per way to start a rank without our launcher: under mpiexec, or as a plain process."""
