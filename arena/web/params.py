"""What a request may carry, with its limits, and the connection that answers it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from arena.store.queries import reading

from .pieces import Script

MAX_ID = 2**53  # ids stay exact in every reader of the JSON

RunId = Annotated[int, Path(ge=1, le=MAX_ID)]
GameId = Annotated[int, Path(ge=1, le=MAX_ID)]
Ply = Annotated[int, Path(ge=1, le=100_000)]
ScriptName = Annotated[Script, Query()]


class Filters(BaseModel):
    """What the library shows; an empty value (an untouched field of the form) filters nothing."""

    model_config = ConfigDict(extra="ignore")

    player: str = Field("", max_length=300)
    rival: str = Field("", max_length=300)
    game: str = Field("", max_length=20)
    result: str = Field("", max_length=10)
    status: str = Field("", max_length=20)
    ending: str = Field("", max_length=20)
    termination: str = Field("", max_length=60)
    page: int = Field(1, ge=1, le=100_000)
    size: int = Field(50, ge=1, le=500)

    def chosen(self) -> dict[str, Any]:
        """The arguments of `data.library`."""
        return {name: value for name, value in self.model_dump().items() if value != ""}

    def query(self, page: int) -> dict[str, Any]:
        """The same view, another page, as query parameters."""
        return self.chosen() | {"page": page}


@contextmanager
def opened(request: Request) -> Iterator[Connection]:
    """A connection that sees one state of the record. Raises StoreError."""
    with reading(request.app.state.store) as db:
        yield db
