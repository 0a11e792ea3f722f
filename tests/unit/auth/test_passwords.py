"""The experimenter's password: only its hash is kept, and only its owner can read that."""

from __future__ import annotations

import re
import stat

import pytest

from lore_active.errors import InvalidParameter
from server.auth.passwords import (
    VARIABLE,
    UnsafePassword,
    generate,
    prepare,
    set_password,
    verify,
)


def test_the_right_password_and_no_other(tmp_path):
    set_password(tmp_path, "correct horse")
    assert verify(tmp_path, "correct horse")
    for wrong in ("", "correct hors", "Correct horse", "correct horse ", "x" * 5000, "\udcff" * 9):
        assert not verify(tmp_path, wrong)


def test_the_file_holds_a_salted_hash_for_its_owner_only(tmp_path):
    set_password(tmp_path, "correct horse")
    file = tmp_path / "password"
    first = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "correct" not in first
    assert re.fullmatch(r"scrypt n=32768 r=8 p=1 [0-9a-f]{32} [0-9a-f]{64}\n", first)
    set_password(tmp_path, "correct horse")
    assert file.read_text() != first
    assert [path.name for path in tmp_path.iterdir()] == ["password"]


def test_a_new_password_replaces_the_old(tmp_path):
    set_password(tmp_path, "first password")
    set_password(tmp_path, "second password")
    assert not verify(tmp_path, "first password")
    assert verify(tmp_path, "second password")


def test_the_cost_is_read_from_the_file(tmp_path):
    # What scrypt makes of "secret" with a salt of zeros at costs that are not today's.
    known = "4ee5fb8d96b9314492fcc93b915f2dd9b8ca0c1ffb40f3c7c2b4facd6ae90c83"
    (tmp_path / "password").write_text(f"scrypt n=16 r=1 p=1 {'0' * 32} {known}\n")
    assert verify(tmp_path, "secret")
    (tmp_path / "password").write_text(f"scrypt n=32 r=1 p=1 {'0' * 32} {known}\n")
    assert not verify(tmp_path, "secret")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"correct horse",
        b"\xff\xfe",
        f"scrypt n=7 r=8 p=1 {'0' * 32} {'0' * 64}\n".encode(),
        f"scrypt n=67108864 r=32 p=1 {'0' * 32} {'0' * 64}\n".encode(),
        f"scrypt n=0 r=0 p=0 {'0' * 32} {'0' * 64}\n".encode(),
    ],
)
def test_a_damaged_password_file_grants_no_access(tmp_path, content):
    (tmp_path / "password").write_bytes(content)
    assert not verify(tmp_path, "correct horse")


def test_without_a_password_file_no_access_is_granted(tmp_path):
    assert not verify(tmp_path, "")
    assert not verify(tmp_path, "correct horse")


def test_characters_encoded_in_two_ways_are_the_same(tmp_path):
    set_password(tmp_path, "Müßiggang")
    assert verify(tmp_path, "Mu\u0308ßiggang")


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025])
def test_too_short_or_too_long(tmp_path, password):
    with pytest.raises(InvalidParameter, match=f"has {len(password)} characters"):
        set_password(tmp_path, password)
    assert list(tmp_path.iterdir()) == []


def test_generated_passwords_differ_and_can_be_typed():
    made = {generate() for _ in range(50)}
    assert len(made) == 50
    assert all(
        re.fullmatch(r"([a-hj-kmnp-z2-9]{5}-){3}[a-hj-kmnp-z2-9]{5}", value) for value in made
    )


@pytest.mark.parametrize(
    "password",
    [
        *(
            "password",
            "Password1",
            "PASSWORT",
            "changeme",
            "change-me!",
            "Change Me 2026",
            "s e c r e t",
        ),
        *("12345678", "2026-11-16", "letmein99", "correct horse battery staple", "lore-active"),
        *("aaaaaaaaaaaa", "abababababab", "my-study-2", "My_Study2", "my-study-2my-study-2"),
    ],
)
def test_the_most_common_passwords_are_refused(tmp_path, password):
    folder = tmp_path / "my-study-2"
    folder.mkdir()
    with pytest.raises(InvalidParameter, match=r"easy to guess|different characters"):
        set_password(folder, password)
    with pytest.raises(UnsafePassword, match=VARIABLE):
        prepare(folder, password)
    assert list(folder.iterdir()) == []


def test_generated_passwords_are_never_refused(tmp_path):
    for _ in range(3):
        set_password(tmp_path, generate())
    prepare(tmp_path, None)


def test_the_environment_sets_a_password_once(tmp_path):
    prepare(tmp_path, "from the environment")
    first = (tmp_path / "password").read_bytes()
    assert verify(tmp_path, "from the environment")
    prepare(tmp_path, "from the environment")
    # Sessions end with every new record: a restart alone must not end them.
    assert (tmp_path / "password").read_bytes() == first
    prepare(tmp_path, "another one of them")
    assert verify(tmp_path, "another one of them")


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (None, 0o644, "has the mode 644, but must be 600"),
        (None, 0o640, "has the mode 640, but must be 600"),
        ("correct horse\n", 0o600, "does not contain a password hash"),
        ("", 0o600, "does not contain a password hash"),
        (f"scrypt n=16 r=1 p=1 {'0' * 32} {'0' * 64}\n", 0o600, "too fast to guess"),
    ],
)
def test_a_weak_password_is_not_served(tmp_path, content, mode, message):
    set_password(tmp_path, "correct horse")
    prepare(tmp_path, None)
    if content is not None:
        (tmp_path / "password").write_text(content)
    (tmp_path / "password").chmod(mode)
    with pytest.raises(UnsafePassword, match=message):
        prepare(tmp_path, None)
