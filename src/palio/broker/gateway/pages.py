from starlette.responses import HTMLResponse, Response
from typing import Any


def page(description: dict[str, Any]) -> Response:
    return HTMLResponse("")
