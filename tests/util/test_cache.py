"""Compiled code on disk: private, whole or made anew, and never the end of a run."""

import errno
import os
import pickle
import stat
import subprocess
import sys
import warnings
from collections import namedtuple
from pathlib import Path

import numba
import pytest
from numba.core.caching import FunctionCache

from relboltz.util import cache
from relboltz.util import jit as compiling
from relboltz.util.errors import CacheWarning

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are of POSIX")


def double(x):
    return 2 * x


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing was told yet."""
    monkeypatch.setattr(cache, "_told", [])


def started(folder, function=double):
    """A function as the next process has it."""
    dispatcher = numba.njit(function)
    dispatcher._cache = cache.kept(FunctionCache, lambda: folder)(function)
    return dispatcher


def compiles(dispatcher, argument=1.5):
    """Whether a call had to compile."""
    assert dispatcher(argument) == 2 * argument
    return bool(sum(dispatcher.stats.cache_misses.values()))


# --- damage -------------------------------------------------------------------------------------


def test_what_was_compiled_is_found_again_by_argument_types(tmp_path):
    assert compiles(started(tmp_path)) and not compiles(started(tmp_path))
    assert compiles(started(tmp_path), 3) and not compiles(started(tmp_path), 3)
    assert not compiles(started(tmp_path))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".nbc", ".nbc"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1])
        + data[len(data) // 2 + 1 :],
        lambda data: cache.sealed(b"\x80\x05no pickle"),
        lambda data: cache.sealed(data[40:]),
    ],
    ids=["empty", "head", "cut", "longer", "bit", "no pickle", "half a pickle"],
)  # fmt: skip
def test_a_damaged_file_is_compiled_anew_and_replaced(tmp_path, damage):
    """LLVM ends the process if the code that it loads is not whole."""
    compiles(started(tmp_path))
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert compiles(started(tmp_path)) and not compiles(started(tmp_path))
    assert list(tmp_path.iterdir()) == [path]


def test_code_of_other_arguments_is_never_taken(tmp_path):
    compiles(started(tmp_path))
    (path,) = tmp_path.iterdir()
    files = started(tmp_path)._cache._cache_file
    data = path.read_bytes()
    files._path(tmp_path, "another").write_bytes(data)
    files._path(tmp_path, "another").chmod(0o600)
    assert files.load("another") is None


def test_code_that_cannot_be_rebuilt_is_compiled(tmp_path, monkeypatch):
    compiles(started(tmp_path))
    dispatcher = started(tmp_path)

    def rebuild(*_):
        raise EOFError("Ran out of input")  # which a command line takes for an abort

    monkeypatch.setattr(dispatcher._cache._impl, "rebuild", rebuild)
    assert compiles(dispatcher)


# --- disks --------------------------------------------------------------------------------------


def test_a_full_disk_is_named_once_and_stops_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning) as said:
        assert compiles(started(tmp_path))
        assert compiles(started(tmp_path))
    (text,) = [str(one.message) for one in said]
    assert str(tmp_path) in text and "No space left on device" in text
    assert "set XDG_CACHE_HOME" in text
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_nothing_where_warnings_are_errors(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        assert compiles(started(tmp_path / "not there"))
        assert compiles(started(None))


def test_no_folder_no_cache(tmp_path, monkeypatch):
    """A file in its place, for instance."""
    (tmp_path / "relboltz").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiling.cache_folder.cache_clear()
    try:
        with pytest.warns(CacheWarning, match="compiled code is not kept.*relboltz"):
            assert compiling.cache_folder() is None
        assert cache.state(None).startswith(f"not kept: {tmp_path}")
        assert compiles(compiling.keep(numba.njit(double), FunctionCache))
    finally:
        compiling.cache_folder.cache_clear()


# --- owners and modes ---------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_folders_and_files_are_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    before = os.umask(0)
    try:
        folder, trouble = cache.found("name")
        assert trouble is None and folder == tmp_path / "new" / "relboltz" / "name"
        compiles(started(folder))
    finally:
        os.umask(before)
    (file,) = folder.iterdir()
    assert [mode(p) for p in (folder, *folder.parents[:2])] == [0o700] * 3
    assert mode(file) == 0o600 and not compiles(started(folder))


@posix
@pytest.mark.parametrize("place", [".", "relboltz", "relboltz/name"])
@pytest.mark.parametrize("loose", [0o777, 0o770, 0o702])
def test_folders_that_others_can_write_are_refused(tmp_path, monkeypatch, place, loose):
    """A folder above lets them put another in its place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.found("name")[1] is None
    (tmp_path / place).chmod(loose)
    _, trouble = cache.found("name")
    assert trouble.startswith(f"others can write {(tmp_path / place).resolve()}; delete ")
    assert "chmod go-w" in trouble and "XDG_CACHE_HOME" in trouble
    (tmp_path / place).chmod(0o755)
    assert cache.found("name")[1] is None


@posix
def test_a_sticky_folder_may_be_above(tmp_path, monkeypatch):
    """As /tmp is: only owners rename what is theirs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tmp_path.chmod(0o1777)
    assert cache.found("name")[1] is None


@posix
def test_folders_of_others_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.found("name")
    monkeypatch.setattr(cache, "_trusted", lambda: {os.geteuid() + 1, os.stat("/").st_uid + 1})
    folder, trouble = cache.found("name")
    assert trouble.startswith(f"{folder} belongs to another user; set XDG_CACHE_HOME")


@posix
def test_files_that_others_own_or_can_write_are_not_read(tmp_path, monkeypatch):
    compiles(started(tmp_path))
    (path,) = tmp_path.iterdir()
    path.chmod(0o620)
    assert compiles(started(tmp_path)) and mode(path) == 0o600  # replaced
    monkeypatch.setattr(cache, "_trusted", lambda: {os.geteuid() + 1})
    assert compiles(started(tmp_path))


@posix
def test_relative_folders_are_ignored(tmp_path, monkeypatch):
    """Else code from the current folder would be run, or written to the root of the disk."""
    import pwd

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.found("name")[0] == (tmp_path / "home/.cache/relboltz/name").resolve()
    for nothing in ("", "home"):
        monkeypatch.setenv("HOME", nothing)
        assert cache.home() == Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert not (tmp_path / "here").exists()


def test_a_generated_source_that_was_altered_is_not_run(tmp_path, monkeypatch):
    from relboltz.backends import elements

    monkeypatch.setattr(elements, "cache_folder", lambda: tmp_path)
    text = f"VALUE = {str(tmp_path)!r}\n"
    name = elements.load(text, "test").__name__
    (path,) = tmp_path.iterdir()
    path.write_text("raise SystemExit")
    monkeypatch.delitem(elements.sys.modules, name)
    assert elements.load(text, "test").VALUE == str(tmp_path) and path.read_text() == text
    monkeypatch.setattr(elements, "cache_folder", lambda: None)
    monkeypatch.delitem(elements.sys.modules, name)
    assert elements.load(text, "test").VALUE == str(tmp_path)


Capability = namedtuple("Capability", "major minor")


def test_equal_keys_have_one_name(tmp_path):
    """Also where one of them has named parts, as versions of a GPU do in some processes."""
    files = cache.CachedFunction(double, lambda: tmp_path, pickle.dumps)
    files.save(("signature", (13, Capability(9, 0))), "code")
    assert files.load(("signature", (13, (9, 0)))) == "code"
    assert files.load(("signature", (13, (8, 0)))) is None


TOGETHER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_cache
from test_cache import started
function = started(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(function(1.5), test_cache.cache._told, flush=True)
"""


def test_processes_that_start_at_once_share_an_empty_folder(tmp_path):
    """All compile, all write the same file, and none sees half of it."""
    command = [sys.executable, "-c", TOGETHER, str(tmp_path), str(Path(__file__).parent)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        out, complaints = process.communicate()
        assert (process.returncode, out, complaints) == (0, "3.0 []\n", "")
    (kept,) = tmp_path.iterdir()  # no parts are left
    assert kept.suffix == ".nbc" and not compiles(started(tmp_path))
