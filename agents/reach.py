"""Is a server there, and does it have the model? Asks for its list of models, nothing else."""

import os
from typing import Any

import httpx

from .base import Check
from .spec import EndpointSpec

REACH_S = 5.0
MOST_NAMED = 8


async def reach_endpoint(name: str, spec: EndpointSpec) -> Check:
    """One line about the server of a player. Raises nothing."""
    key = os.environ.get(spec.api_key_env, "") if spec.api_key_env else ""
    if spec.api_key_env and not key:
        return Check(name, "warn", f"the environment variable {spec.api_key_env} is not set")
    url = spec.base_url.rstrip("/") + ("/api/tags" if spec.api == "ollama" else "/models")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx.AsyncClient(headers=headers, timeout=REACH_S) as client:
            page = await client.get(url)
    except httpx.HTTPError as error:
        return Check(name, "warn", f"{url}: {type(error).__name__}: {error}"[:200])
    if page.status_code != 200:
        return Check(name, "warn", f"{url}: HTTP {page.status_code}")
    models = _names(page)
    if not models or spec.model in models:
        return Check(name, "ok", f"{spec.base_url} answers, {spec.model}")
    known = ", ".join(models[:MOST_NAMED])
    text = f"{spec.base_url} has no model {spec.model!r} in its list: {known}"
    return Check(name, "warn", text)


def _names(page: httpx.Response) -> list[str]:
    """Model names of a list by OpenAI's or Ollama's API; empty where it is none."""
    try:
        found: Any = page.json()
        rows = found.get("data") or found.get("models") or []
        return [str(row.get("id") or row.get("name")) for row in rows]
    except (ValueError, AttributeError, TypeError):
        return []
