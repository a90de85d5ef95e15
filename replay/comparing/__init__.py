"""Two branches or sessions side by side: what they share, where they part, what each cost."""
