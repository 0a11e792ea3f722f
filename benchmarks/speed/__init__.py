"""How long computations, pages, reports and exports take."""
