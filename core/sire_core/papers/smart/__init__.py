"""SMART: reports on communities of entities, from several perspectives."""

REPORTS = "perspective_reports"  # Key of the note that stores the reports and the edges between them
