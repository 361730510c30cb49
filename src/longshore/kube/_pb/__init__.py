"""Generated from the files in proto/ by `make proto`."""
