"""Read models beside the store: made from the records, deleted at will, made again."""
