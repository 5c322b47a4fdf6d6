"""Parts that the three check-ups share: errors, language, settings, tables, charts, pages, and the SQL
engine."""
