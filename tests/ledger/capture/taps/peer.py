"""A small MCP server over standard streams, of our own: `python peer.py [exit status]`."""

import json
import sys
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    print("peer says hello", file=sys.stderr)
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        result: dict[str, Any]
        if "id" not in message:
            continue
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "shop"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": "ü 42"}]}
        else:
            result = {}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


if __name__ == "__main__":
    main()
