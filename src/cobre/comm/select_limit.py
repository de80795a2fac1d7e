"""The longest timeout that may be passed to a selector."""

MAX_SELECT_S = 3600.0  # epoll takes milliseconds in 32 bits; a longer wait is a loop of shorter ones
