"""Writing stays inside a given directory, for any links inside it."""

import os

import pytest

from cobre.io.output.results import write_results
from cobre.io.storage.atomic import WriteError, check_writable, cleanup, remove_leftovers, scratch_directory, write_file
from cobre.io.storage.confined import (
    create_file,
    move_file,
    no_links_below,
    open_folder,
    open_own,
    remove_file,
    remove_tree,
)


@pytest.fixture
def places(tmp_path):
    """Yield a confined directory, and one outside that nothing may touch."""
    (tmp_path / "out").mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").write_text("mine")
    with no_links_below(tmp_path / "out"):
        yield tmp_path / "out", tmp_path / "victim"
    assert (tmp_path / "victim" / "precious").read_text() == "mine"
    assert names(tmp_path / "victim") == ["precious"]


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_link_in_the_place_of_a_folder_is_refused(places):
    out, victim = places
    (out / "training").symlink_to(victim)
    for write in (
        lambda: write_file(out / "training" / "a", b"x"),
        lambda: check_writable(out / "training"),
        lambda: check_writable(out / "training" / "deeper"),
        lambda: write_results(out / "training", {}, {}),
        lambda: scratch_directory(out / "training").__enter__(),
    ):
        with pytest.raises(WriteError, match=r"symbolic link.*remove the link"):
            write()
    with pytest.raises(OSError, match="symbolic links"):
        remove_file(out / "training" / "precious")


def test_symlink_instead_of_file_is_replaced(places):
    out, victim = places
    (out / "summary.json").symlink_to(victim / "precious")
    write_file(out / "summary.json", b"ours")
    assert not (out / "summary.json").is_symlink() and (out / "summary.json").read_bytes() == b"ours"
    (out / "other").symlink_to(victim / "precious")
    remove_file(out / "other")
    (out / "tree").symlink_to(victim)
    remove_tree(out / "tree")
    assert names(out) == ["summary.json"]


def test_only_regular_files_with_one_link_are_opened(places):
    out, victim = places
    (out / "link").symlink_to(victim / "precious")
    os.link(victim / "precious", out / "second")
    os.mkfifo(out / "pipe")
    for name in ("link", "second", "pipe"):
        with pytest.raises(OSError):
            open_own(out / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        (out / name).unlink()
    os.close(open_own(out / "own", os.O_WRONLY | os.O_CREAT))


def test_files_are_made_and_moved_below_the_root_only(places):
    out, victim = places
    (out / "aside").symlink_to(victim)
    create_file(out / "a").close()
    with pytest.raises(OSError):
        move_file(out / "a", out / "aside" / "a")
    with pytest.raises(FileExistsError):
        create_file(out / "a")


def test_directory_itself_may_be_reached_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with no_links_below(tmp_path / "link"):
        write_file(tmp_path / "link" / "a", b"x")
        with open_folder(tmp_path / "link" / "deep" / "er", make=True):
            pass
    assert (tmp_path / "real" / "a").read_bytes() == b"x" and (tmp_path / "real" / "deep" / "er").is_dir()


def test_partial_files_of_killed_runs_are_removed_and_nothing_else(places):
    out, victim = places
    (out / "simulation" / ".scratch.0123abcd.partial").mkdir(parents=True)
    (out / "simulation" / ".scratch.0123abcd.partial" / "hydros.parquet").write_text("half")
    (out / ".iteration-000001.ckpt.89abcdef.partial").write_text("half")
    kept = [".notes.partial", "a.0123abcd.partial", "summary.json"]
    for name in kept:
        (out / name).write_text("mine")
    (out / ".linked.0123abcd.partial").symlink_to(victim)
    (out / "elsewhere").symlink_to(victim)
    remove_leftovers(out)
    assert names(out) == sorted([*kept, "elsewhere", "simulation"])
    assert names(out / "simulation") == []


def test_first_error_is_raised_and_not_that_of_the_cleanup():
    def clean_up():
        raise OSError("the file system is read-only")

    with pytest.raises(LookupError) as caught, cleanup(clean_up):
        raise LookupError("no space")
    assert caught.value.__notes__ == ["and then: the file system is read-only"]
    with pytest.raises(OSError, match="read-only"), cleanup(clean_up):
        pass
