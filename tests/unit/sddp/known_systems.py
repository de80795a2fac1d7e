"""A list of small systems with their optimal costs, as cobre-python 0.18.0 finds them."""

KNOWN = {}


def known(optimum):
    """Register a system under its name."""

    def register(build):
        KNOWN[build.__name__] = (build, optimum)
        return build

    return register
