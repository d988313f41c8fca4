"""The cookies of the service: the token and the theme.

The cookie of a token is HttpOnly, SameSite=Strict and, under https, Secure. Its name contains the port, because
browsers share cookies between all ports of a host.
"""

from collections.abc import Mapping

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "profsvc_theme"
TOKEN_COOKIE_SECONDS = 30 * 24 * 3600


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the name of the cookie that holds the token.

    >>> cookie_name({"host": "lab:8765"}), cookie_name({"host": "lab.example"}), cookie_name({"host": "[::1]"})
    ('profsvc_token_8765', 'profsvc_token', 'profsvc_token')
    """
    port = headers.get("host", "").rpartition("]")[2].rpartition(":")[2]
    return f"profsvc_token_{port}" if port.isascii() and port.isdigit() else "profsvc_token"


def token_cookie(headers: Mapping[str, str], cookies: Mapping[str, str]) -> str | None:
    """Return the token in the cookies; None without one."""
    return cookies.get(cookie_name(headers)) or None


def theme_of(cookies: Mapping[str, str]) -> str:
    """Return the theme in the cookies: light, dark, or auto for that of the system."""
    theme = cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "auto"


def is_local_path(path: str, root_path: str) -> bool:
    """Tell whether a path belongs to this service and cannot redirect elsewhere.

    >>> [is_local_path(path, "") for path in ("/runs/1?a=b", "//evil", "/\\\\evil")], is_local_path("/a", "/lab")
    ([True, False, False], False)
    """
    inside = path.startswith(f"{root_path}/") and path.isascii() and path.isprintable()
    return inside and "\\" not in path and "//" not in path.partition("?")[0]
