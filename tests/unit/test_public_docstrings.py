"""Examples in the docstrings of public names run and give the shown output."""

import doctest
import inspect

import pytest

import cobre

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def with_examples():
    for name in cobre.__all__:
        found = getattr(cobre, name)
        if (inspect.isfunction(found) or inspect.isclass(found)) and ">>>" in (found.__doc__ or ""):
            yield name


@pytest.mark.parametrize("name", list(with_examples()))
def test_examples_run(name, request, monkeypatch, tmp_path):
    (tmp_path / "examples").symlink_to(request.config.rootpath / "examples")
    monkeypatch.chdir(tmp_path)  # for files that examples write
    test = doctest.DocTestParser().get_doctest(getattr(cobre, name).__doc__, {"cobre": cobre}, name, None, None)
    said = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(said)


def test_most_public_names_have_an_example():
    assert len(list(with_examples())) >= 10
