"""Workers that are threads of this process: to try a team without a cluster."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relboltz.backends.team.exchange import ThreadExchange
from relboltz.backends.team.leader import Each, worst
from relboltz.backends.team.worker import Worker
from relboltz.config.settings import RunSettings, Sampling
from relboltz.grid.phase_space import PhaseSpace
from relboltz.model.model import Model


class ThreadWorkerPool:
    """Workers as threads."""

    description = "threads"

    def __init__(self, size: int, model: Model, run: RunSettings):
        self.size, self.model, self.run = size, model, run
        self.workers: list[Worker] = []
        self._interrupt: object = False

    @property
    def interrupt(self) -> object:
        """Once it is true, work in hand is dropped."""
        return self._interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self._interrupt = value
        for worker in self.workers:
            worker.member.interrupt = value

    def form(self, grid: PhaseSpace, sampling: Sampling) -> None:
        """New workers."""
        self.workers = [
            Worker(exchange, self.model, grid, sampling, self.run, 1 / self.size)
            for exchange in ThreadExchange.among(self.size)
        ]
        self.interrupt = self._interrupt

    def ask(
        self, name: str, *common: Any, each: Each | None = None, only: int | None = None
    ) -> list[Any]:
        """Ask all workers, or only one."""
        if only is not None:
            return [self.workers[only].do(name, common, together=False)]
        given = [(*own, *common) for own in each or [()] * self.size]
        told = together([partial(w.do, name, g) for w, g in zip(self.workers, given, strict=True)])
        trouble = worst([one for one in told if isinstance(one, Exception)])
        if trouble is not None:
            raise trouble
        return told

    def close(self) -> None:
        """They are not needed any more."""
        self.workers = []


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Each call in a thread of its own; what they return or raise."""
    told: list[Any] = [None] * len(calls)

    def one(k: int) -> None:
        try:
            told[k] = calls[k]()
        except Exception as error:
            told[k] = error

    threads = [threading.Thread(target=one, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told
