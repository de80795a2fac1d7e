"""Parsing, printing and resolving of coordinator addresses."""

import pytest

from cobre.comm import InitializationFailedError
from cobre.comm.backends.tcp.rendezvous.listener import Address, is_loopback, parse_address, resolve


@pytest.mark.parametrize(
    "text,host,port",
    [
        ("node1", "node1", 29500),
        ("node1:4000", "node1", 4000),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[::1]:4000", "::1", 4000),
        ("[fe80::1%eth0]", "fe80::1%eth0", 29500),
        ("::1", "::1", 29500),
        (" host ", "host", 29500),
    ],
)
def test_addresses_are_parsed(text, host, port):
    assert parse_address(text, 29500) == Address(host, port)


@pytest.mark.parametrize(
    "text", ["", ":", ":80", "host:", "host:eighty", "host:70000", "[::1", "[::1]80", "[]:1", "host:-1"]
)
def test_invalid_address_error_names_variable(text):
    with pytest.raises(InitializationFailedError, match="COBRE_TCP_COORDINATOR"):
        parse_address(text, 29500)


def test_address_prints_as_it_is_written():
    assert str(Address("::1", 5)) == "[::1]:5"
    assert str(Address("a", 5)) == "a:5"


@pytest.mark.parametrize(
    "host,loopback", [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False), ("::", False)]
)
def test_loopback_is_recognised(host, loopback):
    assert is_loopback(host) is loopback


def test_ipv4_mapped_addresses_count_as_ipv4():
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:10.0.0.1")
    assert not is_loopback("localhost")  # a name proves nothing


def test_resolved_addresses_are_unique():
    endpoints = resolve(Address("127.0.0.1", 80))
    assert [(endpoint.host, str(endpoint)) for endpoint in endpoints] == [("127.0.0.1", "127.0.0.1:80")]
