"""C text and plan to the folder that the user takes away."""
