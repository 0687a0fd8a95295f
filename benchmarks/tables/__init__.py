"""Tables and figures of the papers, made again beside the published numbers."""
