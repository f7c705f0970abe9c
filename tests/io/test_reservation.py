"""The lock of an output: one run at a time, and no silence where that cannot be ensured."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from relboltz.io import reservation
from relboltz.io.reservation import Reservation
from relboltz.util.errors import CheckpointWarning, InputError

UNPRIVILEGED = 65534
"""User id of nobody."""
HERE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
AS_NOBODY = """
import fcntl, os, sys
from relboltz.util.errors import InputError
from relboltz.io.reservation import Reservation
from pathlib import Path
os.setgid({user}); os.setuid({user})
try:
    Reservation(Path(sys.argv[1])).take()
except InputError as error:
    print(error)
"""


def failing(monkeypatch, function, number):
    """Let a system call fail with an error number."""

    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(function, fails)


def test_a_lock_file_that_is_a_link_is_refused_and_not_followed(tmp_path):
    (tmp_path / "run.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"run\.lock is a symbolic link .*remove run\.lock"):
        Reservation(tmp_path / "run.nc").take()
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "run.lock").mkdir()
    with pytest.raises(InputError, match=r"run\.lock is a folder .*use another file"):
        Reservation(tmp_path / "run.nc").take()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_lock_file_of_another_user_is_refused(tmp_path, monkeypatch, number):
    failing(monkeypatch, "os.open", number)
    with pytest.raises(InputError, match=r"run\.lock belongs to another user.*use another file"):
        Reservation(tmp_path / "run.nc").take()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root changes its user")
def test_a_lock_file_that_root_made_is_refused_to_others():
    """In a folder that all may write, with the permissions of a real run."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        file = Path(folder, "run.nc")
        first = Reservation(file)
        first.take()
        program = AS_NOBODY.format(user=UNPRIVILEGED)
        told = subprocess.run([sys.executable, "-c", program, file], env=HERE,
                              capture_output=True, text=True)  # fmt: skip
        first.free()
    assert "run.lock belongs to another user" in told.stdout, told.stderr


@pytest.mark.parametrize(
    ("function", "number", "words"),
    [
        ("fcntl.flock", errno.ENOLCK, r"cannot be locked \(No locks available\)"),
        ("fcntl.flock", errno.EOPNOTSUPP, r"cannot be locked \(.*\)"),
        ("os.open", errno.ENOSPC, r"could not be made \(No space left on device\)"),
    ],
)
def test_a_disk_without_locks_or_room_is_warned_of(tmp_path, monkeypatch, function, number, words):
    failing(monkeypatch, function, number)
    with pytest.warns(CheckpointWarning, match=rf"run\.lock {words}: .*start only one"):
        Reservation(tmp_path / "run.nc").take()


def test_a_lock_is_free_again_after_its_run(tmp_path):
    first, second = Reservation(tmp_path / "run.nc"), Reservation(tmp_path / "run.nc")
    first.take()
    assert reservation.is_taken(tmp_path / "run.nc")
    with pytest.raises(InputError, match=r"another process is at this run \(run\.lock\); wait"):
        second.take()
    first.free()
    second.take()
    second.free()
    assert not (tmp_path / "run.lock").exists()
