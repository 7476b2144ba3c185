"""Named weights over token versions, and the arithmetic that says which sample comes when."""
