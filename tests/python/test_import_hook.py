"""The import watch: importlib must not notice it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msmemscope._import_hook import ImportWatch


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package `watched_pkg` with a submodule, importable for the test."""
    folder = tmp_path / "watched_pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import sub\nvalue = 1\n")
    (folder / "sub.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    yield "watched_pkg"
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.startswith("watched_pkg")]:
        del sys.modules[name]


def test_it_tells_at_the_end_of_each_import_and_then_goes_away(package: str) -> None:
    told: list[tuple[str, bool]] = []

    def note(name: str) -> None:
        told.append((name, hasattr(sys.modules[package], "value")))

    watch = ImportWatch([package, f"{package}.sub"], note)
    watch.install()
    assert sys.meta_path[0] is watch
    importlib.import_module(package)
    # The submodule ends first, while the package is not yet complete.
    assert told == [(f"{package}.sub", False), (package, True)]
    assert watch not in sys.meta_path


def test_specs_and_loaders_are_importlib_s_own(package: str) -> None:
    without = importlib.util.find_spec(package)
    watch = ImportWatch([package], lambda _: None)
    watch.install()
    module = importlib.import_module(package)
    assert without is not None
    assert module.__spec__ is not None
    assert module.__spec__ == without
    assert type(module.__loader__) is type(without.loader)
    assert vars(module.__loader__) == vars(without.loader), "nothing is left on the loader"


def test_a_spec_that_is_only_looked_at_changes_nothing(package: str) -> None:
    told: list[str] = []
    watch = ImportWatch([package], told.append)
    watch.install()
    assert importlib.util.find_spec(package) is not None
    assert told == []
    assert package not in sys.modules
    importlib.import_module(package)
    assert told == [package]


def test_reload_works_before_and_after(package: str) -> None:
    told: list[str] = []
    ImportWatch([package], told.append).install()
    module = importlib.import_module(package)
    assert importlib.reload(module) is module
    assert told == [package]


def test_a_failing_import_fails_as_always_and_is_told_when_it_works(
    package: str, tmp_path: Path
) -> None:
    told: list[str] = []
    ImportWatch([package], told.append).install()
    source = tmp_path / package / "__init__.py"
    source.write_text("raise RuntimeError('no')\n")
    with pytest.raises(RuntimeError, match="no"):
        importlib.import_module(package)
    assert told == []
    source.write_text("longer_than_before = 1\n")
    importlib.invalidate_caches()
    importlib.import_module(package)
    assert told == [package]


def test_a_missing_module_is_missing() -> None:
    watch = ImportWatch(["no_such_module_here"], lambda _: None)
    watch.install()
    try:
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module_here")
    finally:
        watch.remove()
    assert watch not in sys.meta_path


def test_other_finders_may_come_before_it(package: str) -> None:
    told: list[str] = []
    watch = ImportWatch([package], told.append)
    watch.install()

    class Other:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            return None

    sys.meta_path.insert(0, Other)  # type: ignore[arg-type]
    importlib.import_module(package)
    assert told == [package]


def test_a_lazy_loader_is_told_when_it_loads(package: str) -> None:
    told: list[str] = []
    ImportWatch([package], told.append).install()
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    spec.loader.exec_module(module)
    assert told == []
    assert module.value == 1
    assert told == [package]
