"""Security headers of every response: pages, files and errors."""

from __future__ import annotations

# Recruitment sites show studies in frames.
PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src "
    "'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors *"
)
# For everything but pages: even if a file is disguised as HTML, none of its scripts run.
CLOSED = "default-src 'none'; frame-ancestors 'none'; sandbox"
SAFE = {
    "Content-Security-Policy": PAGES,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
# Plot adds a <style> to each chart; with the class name `plot` its text, and so its hash, is fixed.
PLOT_STYLE = "'sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM='"
