"""The style sheet of standalone HTML files: a run, and the power of a run."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --muted: #57606a; --line: #d0d7de; --fill: #0969da; --back: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --muted: #9198a1; --line: #3d444d; --fill: #4493f8; --back: #0d1117; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: inline-block; width: 8rem; height: .7rem; border: 1px solid var(--line); border-radius: 2px; }
.bar i { display: block; height: 100%; background: var(--fill); border-radius: 1px; }
.muted { color: var(--muted); } a { color: var(--fill); } code { overflow-wrap: anywhere; }
"""
