"""python -m relboltz."""

from .cli import main

main()
