"""Tables and figures of the papers, made again: one module each, with a `main(arguments)`."""
