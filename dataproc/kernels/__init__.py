"""Text kernels: compiled loops over the buffers of Arrow string columns. No Python string is made of a document."""
