"""What is done to a graph before its values have devices."""
