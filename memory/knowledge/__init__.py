"""Documents that an operator loads for a tenant: read, cut into chunks, kept, found by all its users."""
