"""Why launches take longer than their ideal time: lost time attributed to causes, with evidence."""
