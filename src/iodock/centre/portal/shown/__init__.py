"""The content of each page: tables and charts of a query, without HTML."""
