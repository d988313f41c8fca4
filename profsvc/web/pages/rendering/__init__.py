"""Rendering of pages: templates, filters, tables, static files, inline figures."""
