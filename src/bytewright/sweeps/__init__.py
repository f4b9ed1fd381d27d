"""Many compiles of models for many targets and options: what each needs, and which of them nothing beats."""
