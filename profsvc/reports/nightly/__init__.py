"""The nightly report: its content as text, HTML and Markdown, with its plots."""
