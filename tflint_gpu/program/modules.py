"""The project's modules: which file is which dotted name, parsed when first asked for."""
