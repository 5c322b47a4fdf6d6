"""What each page shows: tables and charts of a question, without any HTML."""
