"""Random numbers with the bits of Cobre's Rust libraries: seeds, generators, normal variates, point sets."""
