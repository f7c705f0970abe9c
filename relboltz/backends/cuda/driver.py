"""Access to numba-cuda, which is imported only here and only when a GPU is requested.

``trouble()`` explains why no GPU can be used and what to do; without a driver it imports nothing.
"""

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...util.jit import Function, keep
from .compiler_processes import Kernel

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
"""Whether kernels run in Numba's simulator: no GPU, plain Python, for tests of tiny systems."""
OLDEST, OLDEST_13 = (7, 0), (7, 5)
"""Least compute capability for the kernels (V100), and for CUDA 13."""


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def parts() -> dict[str, str]:
    """Return the versions of the installed CUDA packages; 'missing' where there is none."""
    wanted = [
        ("numba-cuda",), ("cuda-bindings",), ("cuda-core",),
        ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12"), ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
        ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    ]  # fmt: skip
    return {one[0]: next(filter(None, map(_installed, one)), "missing") for one in wanted}


def _no_device() -> str:
    """Return advice for a driver that sees no GPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"CUDA_VISIBLE_DEVICES is {hidden!r}: unset it, or ask the batch system for a GPU"
    return "nvidia-smi shows what it sees; in a batch job ask for a GPU (Slurm: --gres=gpu:1)"


@cache
def driver() -> tuple[int, int] | str:
    """Return the CUDA version of the driver, e.g. (13, 0), or why there is no usable driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        return "no NVIDIA driver is installed; install one if there is an NVIDIA GPU"
    with ThreadPoolExecutor(1) as pool:  # the driver starts slowly: import meanwhile
        starting = pool.submit(library.cuInit, 0)
        if importlib.util.find_spec("numba_cuda") is not None:
            with contextlib.suppress(Exception):  # reported by ``trouble``
                toolkit()
        code = starting.result()
    if code != 0:
        return f"the NVIDIA driver does not start (cuInit: error {code}); {_no_device()}"
    count, version = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    library.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return f"the NVIDIA driver sees no GPU; {_no_device()}"
    return version.value // 1000, version.value % 1000 // 10


def extra() -> str:
    """Return the pip extra to install for this driver."""
    version = driver()
    return "cuda12" if isinstance(version, tuple) and version < (13, 0) else "cuda"


@cache
def trouble() -> str | None:
    """Return why no GPU can be used and what to do; None if one can be used."""
    if SIMULATED:
        return None
    version = driver()
    if isinstance(version, str):
        return f"{version}; or use run.backend = 'cpu'"
    if version < (12, 0):
        return (
            f"the NVIDIA driver is too old (CUDA {version[0]}.{version[1]}, 12.0 or later is "
            "needed); update it, or use run.backend = 'cpu'"
        )
    if importlib.util.find_spec("numba_cuda") is None:
        return f"numba-cuda is not installed; pip install 'relboltz[{extra()}]'"
    compiler = parts()["nvidia-nvvm"]
    if compiler != "missing" and int(compiler.split(".")[0]) > version[0]:
        return (
            f"the CUDA parts ({compiler}) are too new for the driver (CUDA {version[0]}."
            f"{version[1]}); pip install 'relboltz[{extra()}]', or update the driver"
        )
    return _import_trouble()


def _import_trouble() -> str | None:
    """Return the problems that appear only once numba-cuda is imported."""
    try:
        numpy_version = tuple(int(v) for v in importlib.metadata.version("numpy").split(".")[:2])
        if numpy_version >= (2, 5):
            return "numba-cuda needs numpy below 2.5; pip install 'numpy<2.5'"
        from numba import cuda

        if "numba_cuda" not in str(cuda.__file__):
            return (
                "numba.cuda is not the one of numba-cuda (a folder on PYTHONPATH hides it); "
                f"install it with pip install 'relboltz[{extra()}]'"
            )
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()  # raises an error if the compiler is missing
        capability = tuple(cuda.get_current_device().compute_capability)
        oldest = OLDEST_13 if parts()["nvidia-nvvm"].startswith("13") else OLDEST
        if capability < oldest:
            older = "pip install 'relboltz[cuda12]', or " if capability >= OLDEST else ""
            return (
                f"the GPU has compute capability {capability[0]}.{capability[1]}, and the CUDA "
                f"parts installed need {oldest[0]}.{oldest[1]}; {older}use run.backend = 'cpu'"
            )
    except Exception as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        return (
            f"CUDA does not work here: {text[0]}; reinstall it with pip install "
            f"'relboltz[{extra()}]', or use run.backend = 'cpu'"
        )
    return None


def toolkit() -> Any:
    """Import and return the module numba.cuda."""
    import numba

    if not SIMULATED:
        numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]
    from numba import cuda

    return cuda


def instruction(name: str) -> Any:
    """Return a PTX instruction on one float64 as a function for device code."""
    toolkit()
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def function(typingctx, x):
        def generate(context, builder, signature, arguments):
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double])
            return builder.call(ir.InlineAsm(kind, f"{name} $0, $1;", "=d,d"), arguments)

        return types.float64(types.float64), generate

    return function


def adder() -> Any:
    """Return ``add(array, row, column, value)``: atomic array[row, column] += value for int64.

    Unlike cuda.atomic.add, it does not return the old value.
    """
    toolkit()
    from llvmlite import ir
    from numba import types
    from numba.cuda import cgutils  # type: ignore[attr-defined]
    from numba.cuda.extending import intrinsic

    @intrinsic
    def add(typingctx, array, row, column, value):
        def generate(context, builder, signature, arguments):
            kind = signature.args[0]
            whole = context.make_array(kind)(context, builder, arguments[0])
            indices = [
                context.cast(builder, argument, given, types.intp)
                for argument, given in zip(arguments[1:3], signature.args[1:3], strict=True)
            ]
            pointer = cgutils.get_item_pointer(
                context, builder, kind, whole, indices, wraparound=False
            )
            call = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(64)])
            text = ir.InlineAsm(call, "red.global.add.u64 [$0], $1;", "l,l", side_effect=True)
            builder.call(text, [pointer, arguments[3]])
            return context.get_dummy_value()

        return types.none(array, row, column, types.int64), generate

    return add


def device_function(function: Function) -> Any:
    """Compile a scalar function for the GPU; the simulator uses it unchanged."""
    if SIMULATED:
        return function
    return toolkit().jit(device=True, fastmath=True)(function)


def kernel(function: Function, cached: bool = True, **flags: Any) -> Any:
    """Return a GPU kernel, compiled on first use and cached between runs."""
    cuda = toolkit()
    if SIMULATED:
        return cuda.jit(function)
    from numba.cuda.dispatcher import CUDACache

    compiled = cuda.jit(fastmath=True, **flags)(function)
    return Kernel(keep(compiled, CUDACache) if cached else compiled, cached)


def roomy(launch: Any) -> Any:
    """Let a launch use all shared memory of a block instead of the default 48 KiB."""
    callbacks = getattr(launch, "pre_launch_callbacks", None)  # absent if launches are only noted
    if not SIMULATED and callbacks is not None and _ask_for_room not in callbacks:
        callbacks.append(_ask_for_room)
    return launch


def _ask_for_room(kernel: Any, launch: Any) -> None:
    """Raise the shared-memory limit before the first launch, so that graphs need not."""
    from cuda.bindings import driver

    function = kernel._codelibrary.get_cufunc()
    if function in _roomy:
        return
    _roomy.add(function)
    which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    most = shared_memory()[0] - function.attrs.shared
    (code,) = driver.cuKernelSetAttribute(which, most, function.handle, function.device.id)
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA: {code} for {most} bytes of shared memory")


_roomy: set[Any] = set()


def recorded(stream: Any, work: Callable[[], None]) -> Callable[[], None]:
    """Record a sequence of launches as one CUDA graph, which is cheap to launch again."""
    from cuda.bindings import driver

    def check(result: tuple[Any, ...]) -> Any:
        if result[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"CUDA graphs: {result[0]}")
        return result[1] if len(result) > 1 else None

    handle = driver.CUstream(int(stream))
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    check(driver.cuStreamBeginCapture(handle, mode))
    try:
        work()
    finally:
        graph = check(driver.cuStreamEndCapture(handle))
    executable = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphDestroy(graph))

    def launch() -> None:
        check(driver.cuGraphLaunch(executable, handle))

    weakref.finalize(launch, driver.cuGraphExecDestroy, executable)
    return launch


class RepeatedLaunch:
    """Repeated work: launched directly the first time, then as a CUDA graph."""

    def __init__(self, stream: Any, work: Callable[[], None]):
        self._stream, self._work = stream, work
        self._seen = SIMULATED
        self._graph: Callable[[], None] | None = None

    def __call__(self, count: int = 1) -> None:
        """Launch the work ``count`` times without waiting for it."""
        if count > 0 and (SIMULATED or not self._seen):
            self._work()
            self._seen, count = True, 0 if SIMULATED else count - 1
        if count > 0 and self._graph is None:
            self._graph = recorded(self._stream, self._work)
        for _ in range(count):
            assert self._graph is not None
            self._graph()


def pinned(shape: int | tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Return page-locked host memory that a GPU can access directly."""
    array: NDArray[Any] = toolkit().pinned_array(shape, kind)
    return array


class HostCopies:
    """Host copies of GPU arrays that are read repeatedly."""

    def __init__(self, stream: Any, *arrays: Any):
        self._stream, self._arrays = stream, arrays
        self._copies = [pinned(a.shape, a.dtype) for a in arrays]

    def launch(self) -> None:
        """Start copying the arrays without waiting."""
        for array, copy in zip(self._arrays, self._copies, strict=True):
            array.copy_to_host(copy, stream=self._stream)

    def arrived(self) -> list[NDArray[Any]]:
        """Return the latest copies, once everything launched is done."""
        if self._stream:
            self._stream.synchronize()
        return [copy.copy() for copy in self._copies]


def clear(array: Any, stream: Any) -> None:
    """Set an array to zero without waiting."""
    if SIMULATED:
        array.copy_to_device(np.zeros(array.shape, array.dtype))
        return
    from cuda.bindings import driver

    start = driver.CUdeviceptr(int(array.device_ctypes_pointer.value))
    (code,) = driver.cuMemsetD8Async(start, 0, int(array.nbytes), driver.CUstream(int(stream)))
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA: {code} where an array is cleared")


@cache
def device() -> dict[str, Any]:
    """Return name, memory [bytes] and compute capability of the GPU in use."""
    if SIMULATED:
        return {"name": "simulator", "memory": 2**34, "capability": (9, 0)}
    cuda = toolkit()
    unit = cuda.get_current_device()
    name = unit.name.decode() if isinstance(unit.name, bytes) else str(unit.name)
    _, total = cuda.current_context().get_memory_info()
    return {"name": name, "memory": int(total), "capability": tuple(unit.compute_capability)}


@cache
def multiprocessors() -> int:
    """Return the number of multiprocessors of the GPU in use."""
    if SIMULATED:
        return 1
    return int(toolkit().get_current_device().MULTIPROCESSOR_COUNT)


@cache
def shared_memory() -> tuple[int, int]:
    """Return the shared memory [bytes] available to a block and present on a multiprocessor."""
    if SIMULATED:
        return 2**15, 2**15
    unit = toolkit().get_current_device()
    return (
        int(unit.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        int(unit.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    )


def free_memory() -> int:
    """Return the free memory of the GPU in bytes."""
    if SIMULATED:
        return 2**33
    context = toolkit().current_context()
    context.memory_manager.deallocations.clear()  # released, but not yet returned
    return int(context.get_memory_info()[0])


def use(number: int) -> None:
    """Select GPU ``number``, modulo the number of GPUs of this computer."""
    if not SIMULATED:
        cuda = toolkit()
        cuda.select_device(number % len(cuda.gpus))


def name() -> str:
    """Return a unique identifier of the GPU in use."""
    return "simulator" if SIMULATED else str(toolkit().get_current_device().uuid)
