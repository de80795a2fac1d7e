"""Problems of a case, and their messages."""
