"""CUDA backend: the state lives on the GPU; the host launches steps and reads records."""
