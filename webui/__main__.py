"""`python -m webui`: the same as `loopledger`, where the console script is not on the path."""

from webui.cli import main

main()
