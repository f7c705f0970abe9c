"""``result.rb``: analysis and plots as an xarray accessor (``util.accessor_hook`` attaches it)."""

import io
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from rich.console import Console

from ..io.kinds import as_run, check_run
from ..io.result import box
from ..util import html
from ..util.errors import InputError
from . import expansion, plane, spectra, tables, times
from .comparison import compare
from .exports import export

Times = Any
"""Times in fm, one or several."""


class Result:
    """Analysis of a result of ``solve``: ``result.rb.dN_dp()``, ``result.rb.plot_spectra()``, ...

    Plots are Matplotlib figures, numbers are xarray objects, tables are pandas objects.
    """

    def __init__(self, ds: xr.Dataset):
        if "time" not in ds.dims or "species" not in ds.dims:
            raise InputError("result.rb is for results of solve(), which have times and species")
        self._ds = as_run(check_run(ds, "this Dataset"))

    # -- numbers ---------------------------------------------------------------------------------

    def dN_dp(self) -> xr.DataArray:
        """Return dN/d|p| per volume (time, species, p) [fm^-3 GeV^-1]."""
        return spectra.dN_dp(self._ds)

    def dN_dpT(self) -> xr.DataArray:
        """Return dN/dp_T per volume of the snapshots (snapshot, species, pT) [fm^-3 GeV^-1].

        In Bjorken flow, dN/dp_T per rapidity of all records: per area [fm^-2 GeV^-1], or in space
        integrated over the transverse plane [GeV^-1]. Coordinates: ``width`` (pT) of the rings, and
        ``inside`` (pT), whether they lie inside the momentum grid.
        """
        return spectra.dN_dpT(self._ds)

    def mean_pT(self) -> xr.DataArray:
        """Return the mean p_T [GeV] of the snapshots (snapshot, species); see ``mean_pT``."""
        return spectra.mean_pT(self._ds)

    def flow(self, n: int = 2, weight: str = "number", angle: float | None = None) -> xr.Dataset:
        """Return v_n of the snapshots, or of all records in Bjorken flow: ``v``, ``v_integrated``.

        ``v`` (pT) and ``v_integrated`` are relative to Psi_n, ``angle`` [rad], or to the given
        angle. weight : "number" or "pT". NaN in rings partly outside the grid and for species
        without particles; see ``analysis.flow``.
        """
        return spectra.flow(self._ds, n, weight, angle)

    def eccentricity(self, n: int = 2, weight: str = "energy") -> xr.Dataset:
        """Return epsilon_n, ``angle`` [rad] and ``radius`` [fm] of the transverse energy density.

        weight : "energy" in the frame of the grid, or "landau" in the Landau frame
        """
        return plane.eccentricity(self._ds, n, weight)

    def momentum_anisotropy(self) -> xr.Dataset:
        """Return (T^xx - T^yy)/(T^xx + T^yy), integrated over the plane, and its direction."""
        return plane.momentum_anisotropy(self._ds)

    def per_rapidity(self) -> xr.Dataset:
        """Return dN/dy, dE_T/dy, dE/deta and dS/deta in Bjorken flow."""
        return expansion.per_rapidity(self._ds)

    def pressures(self) -> xr.Dataset:
        """Return total P_L and P_T [GeV fm^-3], and P_L/e."""
        return expansion.pressures(self._ds)

    def comoving(self) -> xr.Dataset:
        """Return spatial averages per initial volume; E includes outflow and work done."""
        return box(self._ds, left=True)

    def scaled_time(self, viscosity: expansion.Viscosity, **options: Any) -> xr.DataArray:
        """Return tau (e + P)/(4 pi eta); for ``viscosity`` see ``analysis.viscosity``."""
        return expansion.scaled_time(self._ds, viscosity, **options)

    def first_order(self, viscosity: expansion.Viscosity, **options: Any) -> xr.Dataset:
        """Return (P_T - P_L) tau/(2 eta), and P_L/e with its value in first-order hydrodynamics."""
        return expansion.first_order(self._ds, viscosity, **options)

    def relaxation_time(
        self, quantity: str = "equilibrium_distance", species: str | None = None, **options: Any
    ) -> xr.DataArray:
        """Return tau of a fit of exp(-t/tau) [fm].

        options : start, end, final, and a component such as axis="x"
        """
        return times.relaxation_time(self._ds, quantity, species, **options)

    def thermalisation_time(self, threshold: float = 0.1) -> xr.DataArray:
        """Return when ``equilibrium_distance`` falls below the threshold [fm]; NaN if never."""
        return times.thermalisation_time(self._ds, threshold)

    def compare(self, other: xr.Dataset) -> pd.DataFrame:
        """Return the largest and last relative difference of every quantity in both results."""
        return compare(self._ds, other)

    def export(self, folder: str | Path, format: str, **options: Any) -> list[Path]:
        """Export as "vtk" (ParaView), "csv" or "music" (one record); return the files written.

        options : for "music": time [fm], eta_max, eta_cells
        """
        return export(self._ds, folder, format, **options)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML report and return its path."""
        from ..visualization.report import written

        return written({Path(path).stem: self._ds}, path)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the run as nested dictionaries."""
        return tomllib.loads(self._ds.attrs["configuration"])

    @property
    def warnings(self) -> list[str]:
        """Accuracy warnings of the run."""
        return str(self._ds.attrs.get("warnings", "")).splitlines()

    def __repr__(self) -> str:
        return f"<relboltz result: {self._title()}>\n{self._table()}"

    def _repr_html_(self) -> str:
        warned = "".join(html.line(f"warning: {text}") for text in self.warnings)
        return html.line(self._title(), "b") + html.text_block(self._table()) + warned

    def _title(self) -> str:
        attrs = self._ds.attrs
        return f"{attrs.get('title', '')} ({attrs.get('status', '')})"

    def _table(self) -> str:
        text = io.StringIO()
        plain: Any = {"force_terminal": False, "force_jupyter": False, "color_system": None}
        Console(file=text, width=110, highlight=False, **plain).print(tables.summary(self._ds))
        return text.getvalue()

    # -- pictures --------------------------------------------------------------------------------

    def overview(self) -> Any:
        """Plot the main quantities on one page."""
        from ..visualization import plots

        return plots.overview(self._ds)

    def plot_spectra(self, species: Any = None, times: Times = None, **options: Any) -> Any:
        """Plot f against |p| at several times."""
        return self._drawn("spectra", species=species, times=times, **options)

    def plot_thermalisation(self, species: Any = None, times: Times = None, **options: Any) -> Any:
        """Plot ln(1/f + eta) against the energy, a straight line in equilibrium."""
        return self._drawn("thermalisation", species=species, times=times, **options)

    def plot_numbers(self, **options: Any) -> Any:
        """Plot particle densities against time."""
        return self._drawn("numbers", **options)

    def plot_energies(self, **options: Any) -> Any:
        """Plot kinetic and total energy against time."""
        return self._drawn("energies", **options)

    def plot_masses(self, **options: Any) -> Any:
        """Plot masses against time."""
        return self._drawn("masses", **options)

    def plot_temperature(self, **options: Any) -> Any:
        """Plot T against time."""
        return self._drawn("temperature", **options)

    def plot_chemical_potentials(self, **options: Any) -> Any:
        """Plot mu of all species against time."""
        return self._drawn("chemical_potentials", **options)

    def plot_distance(self, **options: Any) -> Any:
        """Plot ``equilibrium_distance``, the distance from equilibrium, against time."""
        return self._drawn("distance", **options)

    def plot_entropy(self, **options: Any) -> Any:
        """Plot the entropy against time."""
        return self._drawn("entropy", **options)

    def plot_anisotropy(self, **options: Any) -> Any:
        """Plot P_z/P_T against time."""
        return self._drawn("anisotropy", **options)

    def plot_isotropisation(self, **options: Any) -> Any:
        """Plot |P_z/P_T - 1| against time on a logarithmic scale."""
        return self._drawn("isotropisation", **options)

    def plot_rates(self, **options: Any) -> Any:
        """Plot collision rates against time."""
        return self._drawn("rates", **options)

    def plot_attractor(self, viscosity: expansion.Viscosity, **options: Any) -> Any:
        """Plot P_L/e, and its value in first-order hydrodynamics, against the scaled time."""
        return self._drawn("attractor", viscosity=viscosity, **options)

    def plot_eccentricities(self, harmonics: Any = None, **options: Any) -> Any:
        """Plot transverse eccentricities against time."""
        return self._drawn("eccentricities", harmonics=harmonics, **options)

    def plot_flow(self, harmonics: Any = None, **options: Any) -> Any:
        """Plot v_n of all particles against time; default n: that of the largest initial epsilon_n.

        ``harmonics`` : one n or several
        """
        return self._drawn("flows", harmonics=harmonics, **options)

    def plot_flow_spectra(
        self, harmonic: int | None = None, species: Any = None, times: Times = None, **options: Any
    ) -> Any:
        """Plot v_n against p_T at several times; default n: that of the largest initial epsilon."""
        options |= {"harmonic": harmonic, "species": species, "times": times}
        return self._drawn("flow_spectra", **options)

    def plot_per_rapidity(self, **options: Any) -> Any:
        """Plot dN/dy, dE_T/dy, dE/deta and dS/deta, relative to their initial values."""
        return self._drawn("rapidity", **options)

    def plot_profile(
        self, quantity: str = "number", species: Any = None, axis: str = "x", times: Times = None,
        ax: Any = None,
    ) -> Any:  # fmt: skip
        """Plot a quantity, or a component ("shear_stress xy"), along an axis at several times [fm].

        The axis passes through the centre of the grid.
        """
        given = {"species": species, "axis": axis, "times": times, "ax": ax}
        return self._drawn("profile", quantity=quantity, **given)

    def plot_map(
        self, quantity: str = "number", time: float | None = None, species: Any = None,
        plane: str = "", ax: Any = None,
    ) -> Any:  # fmt: skip
        """Plot a quantity, or a component ("shear_stress xy"), in a plane such as "xy", with flow.

        time : the nearest record is shown [fm]; default: the last
        """
        given = {"time": time, "species": species, "plane": plane, "ax": ax}
        return self._drawn("field_map", quantity=quantity, **given)

    def animate(
        self, path: str | Path, quantity: str = "number", species: Any = None, fps: float = 8.0
    ) -> Path:
        """Write an animation of a quantity in space, GIF or MP4, with one frame per record."""
        from ..visualization import plots

        found: Path = plots.animation(self._ds, path, quantity, species, fps)
        return found

    def _drawn(self, name: str, **options: Any) -> Any:
        """Return the figure of a plot, which is drawn into ``ax`` if given."""
        from ..visualization import plots

        given = {key: value for key, value in options.items() if value is not None}
        return getattr(plots, name)(self._ds, **given).figure
