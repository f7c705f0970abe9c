"""The same kernels over arrays, one module for each kind of machine."""
