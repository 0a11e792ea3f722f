"""The headers that every response carries: pages, files, errors, and the server's own words."""

from __future__ import annotations

# Recruiting services show studies in frames.
PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src "
    "'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors *"
)
# For what is no page: whatever a file pretends to be, nothing in it runs.
SHUT = "default-src 'none'; frame-ancestors 'none'; sandbox"
SAFE = {
    "Content-Security-Policy": PAGES,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
# Plot puts one <style> into each chart; with the class name `plot` its text is always this one.
PLOT_STYLE = "'sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM='"
