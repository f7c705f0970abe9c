"""Pictures of results, and reports as one page of HTML."""
