"""Pictures of a result: Dataset in, Axes out."""
