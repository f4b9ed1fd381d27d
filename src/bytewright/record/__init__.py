"""One record of a plan: its classes, the codec for plan.json, and the builder."""
