"""Pages as a browser without JavaScript sees them."""
