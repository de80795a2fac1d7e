"""Sources of the shared secret, and files that are rejected."""

import os

import pytest

from cobre.comm import InitializationFailedError, TcpConfig
from cobre.comm.backends.tcp.rendezvous.handshake import load_secret

SECRET = "a secret of some length"


def config(**options):
    return TcpConfig("127.0.0.1", 0, 2, **options)


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


def test_secret_file_takes_precedence(secret_file):
    assert load_secret(config(secret_file=str(secret_file), secret="another one, long enough")) == SECRET.encode()


def test_variable_is_used_without_a_file():
    assert load_secret(config(secret=SECRET)) == SECRET.encode()
    assert load_secret(config()) == b""


@pytest.mark.parametrize(
    "mode,allowed", [(0o600, True), (0o400, True), (0o440, True), (0o644, False), (0o660, False), (0o602, False)]
)
def test_file_that_others_can_read_or_change_is_refused(secret_file, mode, allowed):
    secret_file.chmod(mode)
    if allowed:
        assert load_secret(config(secret_file=str(secret_file))) == SECRET.encode()
    else:
        with pytest.raises(InitializationFailedError, match="chmod 600") as caught:
            load_secret(config(secret_file=str(secret_file)))
        assert SECRET not in str(caught.value)


def test_device_as_secret_file_is_rejected():
    with pytest.raises(InitializationFailedError, match="/dev/null is not a regular file"):
        load_secret(config(secret_file="/dev/null"))


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_file_of_another_user_is_refused(secret_file):
    os.chown(secret_file, 65534, 65534)
    with pytest.raises(InitializationFailedError, match="belongs to user 65534, not to you"):
        load_secret(config(secret_file=str(secret_file)))


def test_inherited_anonymous_file_is_accepted():
    reading, writing = os.pipe()
    os.write(writing, SECRET.encode())
    os.close(writing)
    try:
        assert load_secret(config(secret_file=f"/dev/fd/{reading}")) == SECRET.encode()
    finally:
        os.close(reading)


def test_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InitializationFailedError, match=r"cannot read the secret file .*: No such file"):
        load_secret(config(secret_file=str(tmp_path / "none")))
    with pytest.raises(InitializationFailedError, match=str(tmp_path)):
        load_secret(config(secret_file=str(tmp_path)))


@pytest.mark.parametrize("secret", ["short", "x" * 5000])
def test_secrets_of_invalid_length_are_rejected_without_printing_them(secret):
    with pytest.raises(InitializationFailedError, match=f"secret of {len(secret)} bytes") as caught:
        load_secret(config(secret=secret))
    assert secret not in str(caught.value)


def test_config_never_shows_the_secret():
    assert SECRET not in repr(config(secret=SECRET))
    assert SECRET not in str(config(secret=SECRET))
