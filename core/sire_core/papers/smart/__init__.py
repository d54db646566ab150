"""SMART: reports on communities of entities, from several perspectives."""

REPORTS = "perspective_reports"  # Key of the note that stores the reports and the edges between them

WRITTEN = "written_reports"
"""Key of the note that stores what every node left, so that only changed nodes are written again."""
