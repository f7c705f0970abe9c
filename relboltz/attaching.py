"""Puts ``rb`` on xarray's Dataset as soon as xarray is imported, before or after this package.

xarray itself is not imported here: ``import relboltz`` stays fast.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

WATCHED = "xarray"


class Later:
    """``Dataset.rb`` until it is asked for: then ``analysis.accessor.Result`` is registered."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        import xarray as xr

        from .analysis.accessor import Result

        if vars(xr.Dataset).get("rb") is self:  # not yet, and not by another thread
            del xr.Dataset.rb  # type: ignore[attr-defined]
            xr.register_dataset_accessor("rb")(Result)  # type: ignore[no-untyped-call]
        return Result if instance is None else instance.rb


class Watch:
    """A finder of modules that finds none, and attaches ``rb`` when xarray has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The specification that other finders give for xarray, with a loader that attaches."""
        if name != WATCHED:
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        """Have a loader attach ``rb`` to the module that it executes."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _attach(module)

        loader.exec_module = exec_module


def _attach(xarray: Any) -> None:
    xarray.Dataset.rb = Later()


def attach() -> None:
    """Put ``rb`` on xarray's Dataset, now or when xarray is imported."""
    xarray = sys.modules.get(WATCHED)
    if hasattr(xarray, "Dataset"):
        _attach(xarray)
    else:
        sys.meta_path.insert(0, Watch())
