"""One streamed answer of an endpoint, from its HTTP response to its text, or the fault that it is.

Knows no retries and no games. A fault says whether another try may do better, and when.
"""

import contextlib
import email.utils
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

import httpx

from .base import Usage
from .endpoint_wire import Chunk, read_line

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
LONGEST_WAIT_S = 60.0
MOST_BYTES = 8_000_000  # of one streamed answer
_FIXES = {
    401: "check its key",
    402: "the account needs credit",
    403: "check its key",
    404: "check base_url and model",
}


class Fault(Exception):
    """One try failed. `again`: another may do better, in `after` seconds at the earliest."""

    def __init__(self, message: str, *, again: bool, after: float = 0.0) -> None:
        super().__init__(message)
        self.again, self.after = again, after


@dataclass(frozen=True, slots=True)
class Got:
    """A whole answer, and when its first piece and its end came (`time.monotonic`)."""

    content: str
    thinking: str
    ended: str
    usage: Usage
    first: float
    end: float


async def read_answer(response: httpx.Response, api: str) -> Got:
    """The whole answer. Raises Fault for a refusal, an error in the stream, a stream that breaks
    off or never ends; WireError for what is no answer."""
    if response.status_code != 200:
        raise await _refusal(response)
    async with contextlib.aclosing(_chunks(response, api)) as chunks:
        return await _collect(chunks)


async def _chunks(response: httpx.Response, api: str) -> AsyncGenerator[Chunk, None]:
    """The pieces of a streamed answer. Raises Fault for an endless one."""
    size, rest = 0, b""
    async for data in response.aiter_bytes():
        size += len(data)
        if size > MOST_BYTES:
            raise Fault(f"an answer of more than {MOST_BYTES} bytes", again=False)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if chunk := read_line(api, line.decode("utf-8", "replace")):
                yield chunk
    if chunk := read_line(api, rest.decode("utf-8", "replace")):
        yield chunk


async def _collect(chunks: AsyncIterator[Chunk]) -> Got:
    """Raises Fault for a stream that reports an error or breaks off."""
    content: list[str] = []
    thinking: list[str] = []
    first, ended, usage = 0.0, "", Usage()
    async for chunk in chunks:
        if chunk.error:
            raise Fault(chunk.error, again=False)
        if not first and (chunk.content or chunk.thinking):
            first = time.monotonic()
        content.append(chunk.content)
        thinking.append(chunk.thinking)
        ended = chunk.ended or ended
        usage = chunk.usage or usage
        if chunk.last:
            break
    if not ended:
        raise Fault("the stream broke off before the answer ended", again=True)
    end = time.monotonic()
    return Got("".join(content), "".join(thinking), ended, usage, first or end, end)


async def _refusal(response: httpx.Response) -> Fault:
    """What a status other than 200 means."""
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > 300:
            break
    status = response.status_code
    fix = f" ({_FIXES[status]})" if status in _FIXES else ""
    text = f"HTTP {status}{fix}: {body[:300].decode('utf-8', 'replace')}"
    after = retry_after(response.headers.get("Retry-After", ""))
    return Fault(text, again=status in AGAIN, after=after)


def retry_after(value: str) -> float:
    """Seconds that a `Retry-After` header asks for: a number or a date; at most a minute."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(0.0, seconds), LONGEST_WAIT_S) if seconds == seconds else 0.0
