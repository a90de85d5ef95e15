"""Takes a Google ADK session back, in your own process and with your own session service. Imports nothing of ADK.

    from google.adk.events import Event
    from replay.resume.google_adk import resume_session

    session = await resume_session(service, Event, "back/session.json")
    async for event in runner.run_async(user_id=session.user_id, session_id=session.id, new_message=...): ...

The file is what `loopledger rollback ... --into back` wrote. The session is a new one with the events up to the point;
the old one stays as it is.
"""

import json
from pathlib import Path
from typing import Any

FORMAT = "loopledger-google-adk/1"
"""Mark of the file."""


async def resume_session(
    service: Any,
    event_class: Any,
    path: str | Path,
    *,
    app_name: str | None = None,
    user_id: str | None = None,
    session_id: str | None = None,
    state: dict[str, Any] | None = None,
) -> Any:
    """Make the session in the service; give it as the service does.

    `app_name` and `user_id` are those on record unless you give others; `state` is what the old session began with.
    """
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} is no file of a session: expected {FORMAT}, found {told.get('format')!r}")
    names = {"app_name": app_name or told["app_name"], "user_id": user_id or told["user_id"]}
    if None in names.values():
        raise ValueError(f"{path} does not tell {names}: give app_name and user_id")
    session = await service.create_session(**names, session_id=session_id, state=state)
    for event in told["events"]:
        await service.append_event(session, event_class.model_validate(event))
    return session
