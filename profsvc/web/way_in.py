"""What a browser keeps for the service: the token that was pasted, and light or dark. Both are cookies.

The cookie of a token is for this service alone (HttpOnly, SameSite=Strict, Secure under https), and named after the
port, because browsers keep cookies of all ports of a host together.
"""

from collections.abc import Mapping

THEMES = ("auto", "light", "dark")
THEME = "profsvc_theme"
SECONDS = 30 * 24 * 3600


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the name of the cookie that holds the token.

    >>> cookie_name({"host": "lab:8765"}), cookie_name({"host": "lab.example"}), cookie_name({"host": "[::1]"})
    ('profsvc_token_8765', 'profsvc_token', 'profsvc_token')
    """
    port = headers.get("host", "").rpartition("]")[2].rpartition(":")[2]
    return f"profsvc_token_{port}" if port.isascii() and port.isdigit() else "profsvc_token"


def cookie_of(headers: Mapping[str, str], cookies: Mapping[str, str]) -> str | None:
    """Return the token that a browser keeps; None where it keeps none."""
    return cookies.get(cookie_name(headers)) or None


def theme_of(cookies: Mapping[str, str]) -> str:
    """Return whether pages are light or dark, or as the system says."""
    said = cookies.get(THEME, "")
    return said if said in THEMES else "auto"


def is_local(path: str, root_path: str) -> bool:
    """Tell whether a path leads to a page of this service, and nowhere else.

    >>> is_local("/runs/1?a=b", ""), is_local("//evil", ""), is_local("/\\\\evil", ""), is_local("/a", "/lab")
    (True, False, False, False)
    """
    inside = path.startswith(f"{root_path}/") and path.isascii() and path.isprintable()
    return inside and "\\" not in path and "//" not in path.partition("?")[0]
