"""Animations of a result in space."""

from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from xarray import Dataset

from ...util.errors import InputError
from .space import directions, draw_line, draw_map, field, flow_in
from .style import Names, new_axes, styled

FILMS = (".gif", ".mp4")


@styled
def animation(
    ds: Dataset, path: str | Path, quantity: str = "number", species: Names = None, fps: float = 8.0
) -> Path:
    """Write an animation, one frame per record, as GIF or MP4.

    It shows a profile for one direction with space cells, and a map for two or three.
    """
    path, axes = Path(path), directions(ds)[:2]
    if not axes:
        raise InputError(
            "a film needs a result with more than one space cell; plot_spectra, plot_numbers, ... "
            "are for this one"
        )
    writer, ax, values = _writer(path, fps), new_axes(), field(ds, quantity, species, axes)
    draw = partial(draw_map, flow=flow_in(ds, axes)) if len(axes) == 2 else draw_line
    figure: Any = ax.figure
    try:
        with writer.saving(figure, str(path), 120):
            for time in ds.time.values:
                ax.clear()
                draw(ax, values, time)
                if figure.get_layout_engine() is not None:
                    figure.draw_without_rendering()
                    figure.set_layout_engine("none")  # only the data change between frames
                writer.grab_frame()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _writer(path: Path, fps: float) -> AbstractMovieWriter:
    """Return a writer for GIF or MP4, depending on the suffix."""
    if path.suffix == ".gif":
        return PillowWriter(fps=fps)  # type: ignore[arg-type]
    if path.suffix != ".mp4":
        raise InputError(f"{path}: films end in {' or '.join(FILMS)}")
    if not FFMpegWriter.isAvailable():
        raise InputError(f"{path}: .mp4 needs ffmpeg, which is not installed; use .gif")
    return FFMpegWriter(fps=fps)  # type: ignore[arg-type]
