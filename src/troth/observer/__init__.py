"""The observer: sandbox, sensors, join, tree, contract sealing and grading. It ends in records and never decides."""
