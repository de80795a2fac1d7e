"""A server for assistants (Model Context Protocol): cases and runs as tools and resources, inside given folders."""
