"""The config of backend tcp: variables, defaults, secrets and ports."""

import pytest

from cobre.comm import InitializationFailedError, MissingConfigurationError, TcpConfig

FULL = TcpConfig("[::1]:4000", 2, 5, 4001, 1.5, 2.5, 3.5, "0.0.0.0", "/s", "s" * 20, "run", True, "cert", "key", "ca")
RING = TcpConfig("a", 0, 4, ring_bytes=0, ring_ports="29501-29600")


def test_tcp_config_round_trips_through_environment():
    assert TcpConfig.from_env(FULL.to_env()) == FULL
    assert TcpConfig.from_env(RING.to_env()) == RING
    assert TcpConfig.from_env(TcpConfig("a", 0, 1).to_env()) == TcpConfig("a", 0, 1)


def test_defaults_match_specification():
    config = TcpConfig.from_env({"COBRE_TCP_COORDINATOR": "a", "COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"})
    assert (config.port, config.timeout_s, config.operation_timeout_s, config.insecure) == (29500, 60.0, None, False)


def test_ring_ports_are_parsed():
    assert RING.ring_port_range == range(29501, 29601)
    assert TcpConfig("a", 0, 4, ring_ports="4000").ring_port_range == range(4000, 4001)
    assert TcpConfig("a", 0, 4).ring_port_range == range(1)  # the system's choice


def test_to_env_contains_secret_only_from_variable():
    assert "COBRE_TCP_SECRET" not in TcpConfig("a", 0, 1, secret_file="/s").to_env()


@pytest.mark.parametrize("variable", ["COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE"])
def test_missing_tcp_variables_are_named(variable):
    environ = TcpConfig("a", 1, 2).to_env()
    del environ[variable]
    with pytest.raises(MissingConfigurationError, match=variable):
        TcpConfig.from_env(environ)


def test_rank_0_needs_no_coordinator_address():
    config = TcpConfig.from_env({"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"})
    assert config == TcpConfig("", 0, 2) == TcpConfig.from_env(config.to_env())
    with pytest.raises(MissingConfigurationError, match="COBRE_TCP_COORDINATOR is not set: the address"):
        TcpConfig("", 1, 2)


@pytest.mark.parametrize(
    "variable,value,error",
    [
        ("COBRE_TCP_RANK", "two", MissingConfigurationError),
        ("COBRE_TCP_RANK", "5", InitializationFailedError),
        ("COBRE_TCP_SIZE", "0", InitializationFailedError),
        ("COBRE_TCP_PORT", "0", InitializationFailedError),
        ("COBRE_TCP_PORT", "70000", InitializationFailedError),
        ("COBRE_TCP_TIMEOUT_SECS", "-1", InitializationFailedError),
        ("COBRE_TCP_CONNECT_TIMEOUT_SECS", "nan", InitializationFailedError),
        ("COBRE_TCP_OPERATION_TIMEOUT_SECS", "0", InitializationFailedError),
        ("COBRE_TCP_INSECURE", "maybe", MissingConfigurationError),
    ],
)
def test_malformed_variables_are_named(variable, value, error):
    with pytest.raises(error, match=variable):
        TcpConfig.from_env(TcpConfig("a", 0, 2).to_env() | {variable: value})


@pytest.mark.parametrize("options", [{"tls_cert": "c"}, {"tls_key": "k"}, {"tls_ca": "a"}, {"run_id": "x" * 200}])
def test_invalid_combinations_raise(options):
    with pytest.raises(InitializationFailedError):
        TcpConfig("a", 0, 2, **options)
