"""Speed, memory and size, as ratios to yardsticks measured in the same run: `make bench`."""
