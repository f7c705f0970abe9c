"""The CPU backend: threads over chunks of events, pencils and sites."""
