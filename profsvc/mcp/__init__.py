"""Tools for assistants over the Model Context Protocol: upload, list, show, explain, compare, SQL and documentation.

``answers`` makes small answers of what the store or service says, ``access`` decides whom a call is from and what it
may do, ``server`` declares the tools and runs them over stdio or HTTP.
"""
