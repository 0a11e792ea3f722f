"""Flask views: thin functions that call the service and render a template."""
