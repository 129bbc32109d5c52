"""What is stored encrypted, and by which keys."""
