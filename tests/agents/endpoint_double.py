"""A real HTTP server on a thread that speaks the documented wire formats, and misbehaves if told.

The shapes are those of vLLM's and SGLang's OpenAI-compatible servers and of Ollama's `/api/chat`.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BYTES_PER_TOKEN = 4


@dataclass
class Reply:
    """What one request is answered with."""

    pieces: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of a stream
    finish: str | None = "stop"  # None: the stream breaks off
    context: int = 1 << 30  # tokens; longer prompts are cut silently


@dataclass
class Double:
    """`answer` gets (path, headers, JSON) of each request; all are kept."""

    answer: Callable[[str, Mapping[str, Any]], Reply]
    seen: list[tuple[str, Mapping[str, str], dict[str, Any]]] = field(default_factory=list)
    metrics: str = ""
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Bodies of the requests but the two probes that come first."""
        return [body for _, _, body in self.seen[2:]]


def prompt_tokens(body: Mapping[str, Any]) -> int:
    size = sum(len(message["content"].encode()) for message in body["messages"])
    return 10 + size // BYTES_PER_TOKEN


def openai_lines(body: Mapping[str, Any], reply: Reply) -> Iterator[str]:
    def chunk(delta: Any, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        made = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(made)}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    yield ": keep-alive\n\n"
    for piece in reply.thinking:
        yield chunk({"reasoning_content": piece})
    for piece in reply.pieces:
        yield chunk({"content": piece})
    if reply.finish is None:
        return
    yield chunk({}, reply.finish)
    tokens = min(prompt_tokens(body), reply.context)
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": len(reply.pieces),
        "total_tokens": tokens + len(reply.pieces),
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def ollama_lines(body: Mapping[str, Any], reply: Reply) -> Iterator[str]:
    head = {"model": body["model"], "created_at": "2025-01-01T00:00:00.000000Z"}
    for piece in reply.thinking:
        message = {"role": "assistant", "content": "", "thinking": piece}
        yield json.dumps({**head, "message": message, "done": False}) + "\n"
    for piece in reply.pieces:
        message = {"role": "assistant", "content": piece}
        yield json.dumps({**head, "message": message, "done": False}) + "\n"
    if reply.finish is None:
        return
    end = {
        **head,
        "message": {"role": "assistant", "content": ""},
        "done_reason": reply.finish,
        "done": True,
        "total_duration": 4883583458,
        "load_duration": 1334875,
        "prompt_eval_count": min(prompt_tokens(body), reply.context),
        "prompt_eval_cached_count": 3,
        "prompt_eval_duration": 342546000,
        "eval_count": len(reply.pieces),
        "eval_duration": 4535599000,
    }
    yield json.dumps(end) + "\n"


def _handler(double: Double) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {}, [double.metrics.encode()])

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with double.lock:
                double.seen.append((self.path, dict(self.headers), body))
                double.in_flight += 1
                double.most_in_flight = max(double.most_in_flight, double.in_flight)
            try:
                reply = double.answer(self.path, body)
                lines = ollama_lines if self.path == "/api/chat" else openai_lines
                stream = (line.encode() for line in lines(body, reply))
                pieces = stream if reply.body is None else iter([reply.body])
                self._send(reply.status, reply.headers, pieces)
            finally:
                with double.lock:
                    double.in_flight -= 1

        def _send(self, status: int, headers: Mapping[str, str], pieces: Any) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler


@contextmanager
def serving(
    answer: Callable[[str, Mapping[str, Any]], Reply], metrics: str = ""
) -> Iterator[Double]:
    """The double on a port of its own."""
    double = Double(answer, metrics=metrics)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(double))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
