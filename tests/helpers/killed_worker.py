"""A run with two workers of its own Ray, one of which is killed on the way."""

import os
import signal
import sys
import time
import warnings

import relboltz as rb
from relboltz.backends.team.leader import Team

if __name__ == "__main__":
    warnings.simplefilter("always", rb.BackendNotice)
    formed, teams = Team.__init__, []

    def keep(self, *given):
        teams.append(self)
        formed(self, *given)

    def kill(moment):
        if teams and moment.time > 0.04:
            os.kill(teams.pop().crew._places[1].process, signal.SIGKILL)
            time.sleep(3.0)  # until the raylet has noticed

    Team.__init__ = keep
    grid, start = rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}
    rb.solve(rb.gluons(0.3), grid, start, end=0.1, every=0.02, samples=1, backend="cpu", threads=1,
             workers=2, progress=kill)  # fmt: skip
    sys.exit(len(teams))
