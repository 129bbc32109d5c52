"""All of a user in one file, and such files and those of other programs taken in."""
