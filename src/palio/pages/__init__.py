"""Pages for the browser, each one file that needs nothing from elsewhere: what all reports have in common."""
