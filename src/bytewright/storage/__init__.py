"""Stack, pool or arena for each allocation; meets the planner."""
