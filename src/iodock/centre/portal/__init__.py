"""The collector's web pages, and the address to which agents send. The portal computes no results itself."""
