"""A GPU: the state lives there, the host launches steps and reads records."""
