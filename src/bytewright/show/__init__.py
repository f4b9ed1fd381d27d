"""What commands say, as values, and a writer for each format."""
