"""Contains what several parts of iodock share: errors, languages, settings, tables, charts, pages, and the
SQL engine."""
