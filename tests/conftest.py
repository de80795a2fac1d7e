"""For all tests."""

import signal

# A shell lets its background jobs ignore Ctrl-C, and what they start inherits that; many tests send it.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
