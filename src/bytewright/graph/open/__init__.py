"""A network whose inputs have an axis of open extent: what it becomes where each run is given that extent."""
