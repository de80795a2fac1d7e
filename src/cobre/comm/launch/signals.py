"""Signals that ask a run to end in its own way."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


@contextmanager
def passing_on(signals: Sequence[signal.Signals], tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """While the block runs, the first of some signals is told; the next one is `KeyboardInterrupt`."""
    if not signals or threading.current_thread() is not threading.main_thread():
        yield
        return
    has_come = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal has_come
        if has_come:
            raise KeyboardInterrupt
        has_come = True
        tell(signal.Signals(number))

    former = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
