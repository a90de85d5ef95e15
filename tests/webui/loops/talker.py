"""Speaks HTTP in all the ways that a client may; prints what it got, as JSON. Its argument says which way."""

import gzip
import hashlib
import http.client
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

_PLACE = urlsplit(os.environ["ANTHROPIC_BASE_URL"])


def connection(timeout: float = 120) -> http.client.HTTPConnection:
    """A connection that stays open."""
    assert _PLACE.hostname is not None
    return http.client.HTTPConnection(_PLACE.hostname, _PLACE.port, timeout=timeout)


def body(words: str, *, stream: bool = False) -> bytes:
    """A request."""
    asked = {"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": words}]}
    return json.dumps({**asked, "stream": stream}).encode()


def told(answer: http.client.HTTPResponse) -> list[Any]:
    """Status, kind, and a digest of the body as far as it came."""
    try:
        data, is_cut = answer.read(), False
    except http.client.IncompleteRead as cut:
        data, is_cut = cut.partial, True
    return [answer.status, answer.getheader("content-type"), hashlib.sha256(data).hexdigest(), is_cut]


def send(data: bytes | None, path: str = "/v1/messages", method: str = "POST", **headers: str) -> list[Any]:
    """One exchange."""
    line = connection()
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, _PLACE.path + path, data, named)
        return told(line.getresponse())
    finally:
        line.close()


def leave(*, early: bool) -> Any:
    """Ask, and go away before the answer ends."""
    line = connection(timeout=1.5 if early else 120)
    line.request("POST", f"{_PLACE.path}/v1/messages", body("go on", stream=True))
    try:
        answer = line.getresponse()
        first = answer.read1(10).decode()
        answer.close()
    except TimeoutError:
        first = None
    line.close()
    return first


def talk(number: int) -> list[Any]:
    """Four exchanges over one connection."""
    line = connection()
    found = []
    for turn in range(4):
        line.request(
            "POST", f"{_PLACE.path}/v1/messages", body(f"{number} of many, {turn}", stream=turn % 2 == 0)
        )
        answer = line.getresponse()
        found.append(answer.status if answer.read() else None)
    line.close()
    return found


def main(way: str) -> Any:
    """What came of it."""
    match way:
        case "abort" | "early abort":
            return leave(early=way == "early abort")
        case "large":
            return send(body("picture " + "Ab1+" * 5_000_000))
        case "gzip":
            return send(gzip.compress(body("packed")), content_encoding="gzip", accept_encoding="gzip")
        case "alike":
            with ThreadPoolExecutor(2) as pool:
                return sorted(pool.map(lambda _: send(body("twice the same")), range(2)))
        case "many":
            with ThreadPoolExecutor(50) as pool:
                return list(pool.map(talk, range(50)))
        case "apples, pears" | "pears, apples":
            return [send(body(words)) for words in way.split(", ")]
        case "others":
            head = send(None, "/api/hello", "HEAD")
            return [head, send(None, "/v1/models", "GET"), send(body("hi")), send(b"{}", "/v1/unknown")]
    return send(body("hi", stream=True))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
