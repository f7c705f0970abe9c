"""Attach ``rb`` to xarray's Dataset as soon as xarray is imported, before or after this package.

xarray itself is not imported here: ``import relboltz`` stays fast.
"""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

WATCHED = "xarray"


class LazyAccessor:
    """``Dataset.rb``: imports ``analysis.accessor.Result`` on first access.

    Like xarray's own accessors it caches the object in the Dataset.
    """

    def __get__(self, instance: Any, owner: Any) -> Any:
        from ..analysis.accessor import Result

        if instance is None:
            return Result
        try:
            kept = instance._cache
        except AttributeError:
            kept = instance._cache = {}
        if "rb" not in kept:
            try:
                kept["rb"] = Result(instance)
            except AttributeError as error:  # Dataset would report a missing attribute
                raise RuntimeError("relboltz: result.rb could not be created") from error
        return kept["rb"]


class XarrayImportHook:
    """Module finder that finds no modules, but attaches ``rb`` once xarray has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of xarray from other finders, with a loader that attaches ``rb``."""
        if name != WATCHED:
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        """Make a loader attach ``rb`` to the module that it executes."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ != WATCHED:  # a loader may load other modules as well
                return
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _attach(module)

        with contextlib.suppress(AttributeError):  # loaders that cannot be changed
            loader.exec_module = exec_module


def _attach(xarray: Any) -> None:
    xarray.Dataset.rb = LazyAccessor()


def attach() -> None:
    """Attach ``rb`` to xarray's Dataset, now or when xarray is imported."""
    xarray = sys.modules.get(WATCHED)
    if xarray is not None:
        import xarray  # waits for another thread that is importing it
    if hasattr(xarray, "Dataset"):
        _attach(xarray)
    else:
        sys.meta_path.insert(0, XarrayImportHook())
