"""One run: set-up, preliminary checks, time loop and continuation."""
