from typing import Any

from starlette.responses import HTMLResponse, Response


def page(description: dict[str, Any]) -> Response:
    return HTMLResponse("")
