"""Pure functions over text: cleaning, splitting, analysing, estimating, hashing, and times."""
