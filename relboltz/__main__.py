"""python -m relboltz."""

from .cli.app import main

main()
