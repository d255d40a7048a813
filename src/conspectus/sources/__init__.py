"""Where documents come from: files and folders, and the formats they are in."""
