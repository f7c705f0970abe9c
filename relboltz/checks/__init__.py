"""What is checked and chosen before a run, and what is said about its accuracy."""
