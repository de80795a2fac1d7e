"""For all tests."""

import signal

from hypothesis import settings

# No test depends on how fast the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# A shell lets its background jobs ignore Ctrl-C, and what they start inherits that; many tests send it.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
