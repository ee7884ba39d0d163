"""The command line: turns words into a call and the answer into words."""
