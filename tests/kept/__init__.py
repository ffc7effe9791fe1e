"""What must not change while the house is rebuilt: python -m tests.kept, and what it gave."""
