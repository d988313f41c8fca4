"""Files of a run that contain the same launches: copies, pages of a report, and captures by two tools."""
