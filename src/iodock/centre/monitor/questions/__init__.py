"""Questions to a monitor store, one a file: a span of time -> a table. No page and no number's form is known
here."""
