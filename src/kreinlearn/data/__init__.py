"""Where objects are: rows in memory, in files and in tables, and the memory they may take."""
