"""The collectives: a star around rank 0, or shared memory inside nodes and TCP between them."""
