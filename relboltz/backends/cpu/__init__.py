"""The CPU: threads over chunks of events, pencils and sites."""
