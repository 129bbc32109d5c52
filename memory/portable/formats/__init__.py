"""What other programs export: one module a format, which finds in a record what Hearth takes in."""
