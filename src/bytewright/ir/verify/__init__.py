"""What a module must be at each stage, and programs from outside before they are let in."""
