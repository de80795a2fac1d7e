"""Paths from clients: only those inside the roots, for any spelling."""

import pytest

from cobre.mcp.roots import RefusedPathError, Roots


@pytest.fixture
def places(tmp_path):
    for name in ("inside/case", "other/case", "secret/case"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def roots(places):
    return Roots([places / "inside", places / "other"])


def test_relative_paths_start_in_the_first_folder(roots, places):
    assert roots.resolve("case") == places / "inside" / "case"
    assert roots.resolve("not/there/yet") == places / "inside" / "not" / "there" / "yet"
    assert roots.resolve(".") == places / "inside"


def test_absolute_paths_into_any_root_are_accepted(roots, places):
    assert roots.folder(str(places / "other" / "case")) == places / "other" / "case"


@pytest.mark.parametrize(
    "text", ["..", "../secret", "case/../../secret", "/etc/passwd", "/", "case/../..", "~", "", "a\0b", "../insider"]
)
def test_rejects_paths_that_lead_outside(roots, places, text):
    (places / "insider").mkdir()
    if text == "~":  # not expanded by a shell: a directory of that name
        assert roots.resolve(text) == places / "inside" / "~"
        return
    with pytest.raises(RefusedPathError):
        roots.resolve(text)


def test_rejects_link_that_leads_outside(roots, places):
    (places / "inside" / "link").symlink_to(places / "secret")
    (places / "inside" / "dangling").symlink_to(places / "secret" / "new")

    for text in ("link", "link/case", "link/new/folder", "dangling", "dangling/deeper"):
        with pytest.raises(RefusedPathError, match="outside the folders"):
            roots.resolve(text)


def test_follows_a_link_from_one_folder_to_another(roots, places):
    (places / "inside" / "link").symlink_to(places / "other")

    assert roots.folder("link/case") == places / "other" / "case"


@pytest.mark.parametrize("name", ["system", "config.json"])
def test_rejects_folder_that_contains_link_to_outside(roots, places, name):
    (places / "inside" / "case" / "deep").mkdir()
    (places / "inside" / "case" / "deep" / name).symlink_to(places / "secret")

    with pytest.raises(RefusedPathError, match="outside the folders"):
        roots.folder("case")


def test_rejects_symlink_loop(roots, places):
    (places / "inside" / "a").symlink_to(places / "inside" / "b")
    (places / "inside" / "b").symlink_to(places / "inside" / "a")

    with pytest.raises(RefusedPathError):
        roots.folder("a")


def test_rejects_file_or_missing_path_as_folder(roots, places):
    (places / "inside" / "file").write_text("")

    with pytest.raises(RefusedPathError, match="is a file"):
        roots.folder("file")
    with pytest.raises(RefusedPathError, match="does not exist"):
        roots.folder("nothing")


def test_names_of_folders_are_unique_and_lead_back(places):
    (places / "other" / "inside" / "run").mkdir(parents=True)
    roots = Roots([places / "inside", places / "other" / "inside"])

    assert roots.name_of(places / "inside" / "case") == ("inside", "case")
    assert roots.name_of(places / "other" / "inside" / "run") == ("inside-2", "run")
    assert roots.name_of(places / "inside") == ("inside", ".")
    assert roots.named("inside-2", "run") == places / "other" / "inside" / "run"
    assert roots.named("inside", ".") == places / "inside"
    for name, relative in (("secret", "case"), ("inside", "../secret"), ("inside", "/etc")):
        with pytest.raises(RefusedPathError):
            roots.named(name, relative)


def test_missing_root_raises(places):
    with pytest.raises(ValueError, match="at least one"):
        Roots([])
    with pytest.raises(RefusedPathError, match="not a folder"):
        Roots([places / "nothing"])
