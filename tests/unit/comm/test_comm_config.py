"""Configs of all backends: environment variables, types and ranges."""

from functools import partial

import numpy as np
import pytest

from cobre.comm import (
    InitializationFailedError,
    LocalConfig,
    MissingConfigurationError,
    MpiConfig,
    ShmConfig,
    TcpConfig,
)


def test_configs_round_trip_through_environment():
    config = ShmConfig("cobre-x", 2, 5, 1.5, 2.5, 3.5, "condvar", 1 << 20)
    assert ShmConfig.from_env(config.to_env()) == config
    assert ShmConfig.from_env(ShmConfig("n", 0, 1).to_env()) == ShmConfig("n", 0, 1)
    assert LocalConfig.from_env(LocalConfig().to_env()) == LocalConfig()


@pytest.mark.parametrize("variable", ["COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE"])
@pytest.mark.parametrize("value", [None, ""])
def test_missing_variables_are_named(variable, value):
    environ = ShmConfig("n", 0, 1).to_env()
    environ.pop(variable)
    if value is not None:
        environ[variable] = value
    with pytest.raises(MissingConfigurationError, match=variable) as caught:
        ShmConfig.from_env(environ)
    assert caught.value.variable == variable


@pytest.mark.parametrize(
    "variable,value,error,words",
    [
        ("COBRE_SHM_RANK", "two", MissingConfigurationError, "must be an integer"),
        ("COBRE_SHM_SIZE", "4.0", MissingConfigurationError, "the number of ranks"),
        ("COBRE_SHM_TIMEOUT_SECS", "soon", MissingConfigurationError, "number of seconds"),
        ("COBRE_SHM_SIZE", "1000000", InitializationFailedError, "processes, not bytes"),
        ("COBRE_SHM_SIZE", "0", InitializationFailedError, "from 1 to 1024"),
        ("COBRE_SHM_RANK", "3", InitializationFailedError, "must be a rank from 0 to 1"),
        ("COBRE_SHM_RANK", "-1", InitializationFailedError, "must be a rank from 0 to 1"),
        ("COBRE_SHM_NAME", "a/b", InitializationFailedError, "not a valid segment name"),
        ("COBRE_SHM_NAME", "x" * 65, InitializationFailedError, "at most 64"),
        ("COBRE_SHM_TIMEOUT_SECS", "-1", InitializationFailedError, "COBRE_SHM_TIMEOUT_SECS"),
        ("COBRE_SHM_TIMEOUT_SECS", "nan", InitializationFailedError, "positive"),
        ("COBRE_SHM_CONNECT_TIMEOUT_SECS", "0", InitializationFailedError, "COBRE_SHM_CONNECT_TIMEOUT_SECS"),
        ("COBRE_SHM_OPERATION_TIMEOUT_SECS", "inf", InitializationFailedError, "positive"),
        ("COBRE_SHM_WAIT", "poll", InitializationFailedError, "futex or condvar"),
        ("COBRE_SHM_WINDOW_BYTES", "-5", InitializationFailedError, "COBRE_SHM_WINDOW_BYTES"),
        ("COBRE_SHM_WINDOW_BYTES", "1M", MissingConfigurationError, "integer"),
    ],
)
def test_invalid_value_error_names_expected_value(variable, value, error, words):
    environ = ShmConfig("n", 0, 2).to_env() | {variable: value}
    with pytest.raises(error, match=words):
        ShmConfig.from_env(environ)


@pytest.mark.parametrize(
    "config,options,words",
    [
        (ShmConfig, {"name": 3}, r"ShmConfig.name must be a string, got 3 \(int\)"),
        (ShmConfig, {"rank": "0"}, r"ShmConfig.rank must be an integer, got '0' \(str\)"),
        (ShmConfig, {"rank": False}, r"ShmConfig.rank must be an integer, got False \(bool\)"),
        (ShmConfig, {"size": 2.0}, r"ShmConfig.size must be an integer, got 2.0 \(float\)"),
        (ShmConfig, {"timeout_s": "1"}, "ShmConfig.timeout_s must be a number, got '1'"),
        (ShmConfig, {"timeout_s": None}, "ShmConfig.timeout_s must be a number, got None"),
        (ShmConfig, {"operation_timeout_s": "1"}, "must be a number or None"),
        (ShmConfig, {"wait": None}, "ShmConfig.wait must be a string"),
        (ShmConfig, {"window_bytes": 1.5}, "ShmConfig.window_bytes must be an integer"),
        (TcpConfig, {"coordinator": None}, "TcpConfig.coordinator must be a string, got None"),
        (TcpConfig, {"port": "29500"}, "TcpConfig.port must be an integer"),
        (TcpConfig, {"insecure": 1}, "TcpConfig.insecure must be True or False, got 1"),
        (TcpConfig, {"run_id": 7}, "TcpConfig.run_id must be a string"),
        (MpiConfig, {"checked": "yes"}, "MpiConfig.checked must be True or False, got 'yes'"),
        (MpiConfig, {"max_message_bytes": None}, "MpiConfig.max_message_bytes must be an integer"),
    ],
)
def test_wrong_field_type_error_names_expected_type(config, options, words):
    required = {ShmConfig: {"name": "n"}, TcpConfig: {"coordinator": "a"}, MpiConfig: {}}[config]
    world = {} if config is MpiConfig else {"rank": 0, "size": 2}
    with pytest.raises(InitializationFailedError, match=words):
        config(**{**required, **world, **options})


def test_secret_of_another_type_is_not_shown():
    with pytest.raises(InitializationFailedError, match=r"TcpConfig.secret must be a string, got a bytes") as caught:
        TcpConfig("a", 0, 2, secret=b"not for your eyes")
    assert "not for your eyes" not in str(caught.value)


def test_numpy_numbers_are_accepted():
    config = ShmConfig("n", np.int64(1), np.int32(2), timeout_s=np.float32(1.5), operation_timeout_s=2)
    assert ShmConfig.from_env(config.to_env()) == config


@pytest.mark.parametrize(
    "make,words",
    [
        (lambda: MpiConfig(max_message_bytes=0), "COBRE_MPI_MAX_MESSAGE_BYTES must be a number of bytes from 1 to"),
        (lambda: TcpConfig("here", 0, 2, ranks_per_host=-1), "COBRE_TCP_RANKS_PER_HOST must be 0"),
        (lambda: TcpConfig("here", 0, 2, ring_bytes=-1), "COBRE_TCP_RING_BYTES must be a number of bytes from 0"),
        *(
            (partial(TcpConfig, "here", 0, 2, ring_ports=ports), "COBRE_TCP_RING_PORTS must be a port or a range")
            for ports in ("0", "9-8", "1-70000", "any", "-1", "5-", "1-2-3")
        ),
    ],
)
def test_out_of_range_number_error_names_variable(make, words):
    with pytest.raises(InitializationFailedError, match=words):
        make()
