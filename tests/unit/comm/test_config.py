import pytest

from cobre.comm import InitializationFailedError, LocalConfig, MissingConfigurationError, ShmConfig


def test_round_trip_through_the_environment():
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
        ("COBRE_SHM_SIZE", "1000000", InitializationFailedError, "counts processes, not bytes"),
        ("COBRE_SHM_SIZE", "0", InitializationFailedError, "from 1 to 1024"),
        ("COBRE_SHM_RANK", "3", InitializationFailedError, "not a rank from 0 to 1"),
        ("COBRE_SHM_RANK", "-1", InitializationFailedError, "not a rank from 0 to 1"),
        ("COBRE_SHM_NAME", "a/b", InitializationFailedError, "no segment name"),
        ("COBRE_SHM_NAME", "x" * 31, InitializationFailedError, "at most 30"),
        ("COBRE_SHM_TIMEOUT_SECS", "-1", InitializationFailedError, "COBRE_SHM_TIMEOUT_SECS"),
        ("COBRE_SHM_TIMEOUT_SECS", "nan", InitializationFailedError, "positive"),
        ("COBRE_SHM_CONNECT_TIMEOUT_SECS", "0", InitializationFailedError, "COBRE_SHM_CONNECT_TIMEOUT_SECS"),
        ("COBRE_SHM_OPERATION_TIMEOUT_SECS", "inf", InitializationFailedError, "positive"),
        ("COBRE_SHM_WAIT", "poll", InitializationFailedError, "futex or condvar"),
        ("COBRE_SHM_WINDOW_BYTES", "-5", InitializationFailedError, "COBRE_SHM_WINDOW_BYTES"),
        ("COBRE_SHM_WINDOW_BYTES", "1M", MissingConfigurationError, "integer"),
    ],
)
def test_nonsense_is_explained(variable, value, error, words):
    environ = ShmConfig("n", 0, 2).to_env() | {variable: value}
    with pytest.raises(error, match=words):
        ShmConfig.from_env(environ)
