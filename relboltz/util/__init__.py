"""What every room uses: errors, arrays, compilation, caches, text."""
