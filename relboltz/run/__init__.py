"""One run: its set-up, the checks before it, the loop, how it goes on."""
