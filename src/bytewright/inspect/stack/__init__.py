"""What the compiler says of the stack, held against the plan."""
