"""The collector's web pages and its door for agents. No calculation of its own."""
