"""Source systems: epochs of their positions, how far each has been read, what they were seen to do."""
