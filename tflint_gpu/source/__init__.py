"""Finding and reading source files; nothing here imports or runs them."""
