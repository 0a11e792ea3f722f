"""The pages: thin views that ask the service and render a template."""
