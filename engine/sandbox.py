"""A jinja2 environment for templates that strangers wrote: immutable, sandboxed and bounded.

Beyond jinja2's own sandbox, whatever a template does is counted: steps (loop rounds, calls,
filters), characters and elements of every value it makes, and seconds. What would grow past a limit
is refused before it is made, so a template bomb fails at once and clearly. It renders as
transformers' `apply_chat_template` does: trim_blocks, lstrip_blocks, loop controls, generation
tags, raise_exception, strftime_now and a plain tojson.
"""

import functools
import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from .types import EngineError

MAX_SOURCE = 1 << 18  # characters of a template
MAX_SIZE = 1 << 22  # characters of one value
MAX_WORK = 1 << 28  # characters made or printed in one rendering
MAX_STEPS = 100_000
MAX_SECONDS = 5.0
MAX_WIDTH = 10_000  # whole numbers given to filters and methods of strings
MAX_BITS = 1 << 16


class TemplateError(EngineError):
    """A chat template that is wrong, refuses its messages, or asks for too much; one line."""


class _Budget:
    """What one rendering has used."""

    def __init__(self) -> None:
        self.steps = 0
        self.work = 0
        self.end = time.monotonic() + MAX_SECONDS

    def step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > MAX_STEPS:
            raise TemplateError(f"the chat template takes more than {MAX_STEPS} steps")
        if time.monotonic() > self.end:
            raise TemplateError(f"the chat template takes more than {MAX_SECONDS:.0f} seconds")

    def made(self, value: object) -> None:
        self.work += _measure(value)
        if self.work > MAX_WORK:
            raise TemplateError(f"the chat template makes more than {MAX_WORK} characters")


_budget: ContextVar[_Budget] = ContextVar("template_budget")


@contextmanager
def budget() -> Iterator[None]:
    """A fresh budget for one compilation or rendering."""
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def _too_large() -> TemplateError:
    return TemplateError(f"the chat template makes a value of more than {MAX_SIZE} characters")


def _measure(value: object) -> int:
    """Characters and eight an element, shared parts counted each time. Raises past MAX_SIZE."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, Collection) and not isinstance(item, bytes | range):
            stack.extend(item)
        total += 8  # an element costs more than a character
        if total + len(stack) > MAX_SIZE:
            raise _too_large()
    return total


def _product(*factors: int) -> None:
    total = 1
    for factor in factors:
        total *= factor
    if total > MAX_SIZE:
        raise _too_large()


def _settled(value: Any) -> Any:
    """A lazy iterable as a list, so that its size is known."""
    if not isinstance(value, Iterator) or isinstance(value, LoopContext):
        return value
    items, total = [], 0
    for item in value:
        _budget.get().step()
        total += _measure(item)
        if total > MAX_SIZE:
            raise _too_large()
        items.append(item)
    return items


def _check_format(pattern: str) -> None:
    """A width in a format string can ask for any amount of memory."""
    if re.search(r"\d{5}|\*|\{[^{}]*\{", pattern):
        raise TemplateError("the chat template uses a format with a width out of bounds")


def _guard(name: str, arguments: tuple[Any, ...]) -> None:
    """Refuse a filter or string method whose result could outgrow its arguments too far.

    A method is named `str.…` and its string is the first argument.
    """
    size = _measure(arguments)
    subject = arguments[0] if arguments else ""
    rest = arguments[1:]
    widths = [item for item in rest if isinstance(item, int)]
    longest = max((len(item) for item in rest if isinstance(item, str)), default=0)
    if max(map(abs, widths), default=0) > MAX_WIDTH:
        raise TemplateError(f"the chat template calls {name} with a number above {MAX_WIDTH}")
    verb = name.removeprefix("str.")
    if verb == "replace":
        _product(len(str(subject)) + 1, longest)
    elif verb == "join":
        separator = subject if name == "str.join" else next(iter(rest), "")
        _product(len(str(separator)), size)
    elif verb in ("indent", "expandtabs", "tojson"):
        _product(size, max([*widths, longest, 8]))
    elif verb in ("format", "format_map"):
        _check_format(str(subject))
    elif verb == "translate":
        raise TemplateError("the chat template calls translate")


def _bounded(name: str, function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """A filter under the budget. `first`: where its own arguments begin, after jinja2's."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _budget.get().step()
        own = (*(_settled(item) for item in args[first:]), *kwargs.values())
        _guard(name, own)
        args = (*args[:first], *own[: len(args) - first])
        result = _settled(function(*args, **kwargs))
        _budget.get().made(result)
        return result

    return wrapper


class _Counted(NodeTransformer):
    """Rewrites what jinja2 offers no hook for: loops and the `~` operator."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        if isinstance(node.iter, nodes.Expr):
            node.iter = _filter(node.iter, "_loop")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno, environment=node.environment)
        return _filter(parts, "_concat")


def _filter(node: nodes.Expr, name: str) -> nodes.Filter:
    where = {"lineno": node.lineno, "environment": node.environment}
    return nodes.Filter(node, name, [], [], None, None, **where)


def _loop(value: Iterable[Any]) -> Iterable[Any]:
    if isinstance(value, Sized):
        _budget.get().step(len(value))
    return value


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks trained text; it renders as its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Namespace(Namespace):
    """jinja2's namespace without names that begin with an underscore."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise TemplateError(f"the chat template sets the name {name!r}")
        super().__setitem__(name, value)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """See the module. Templates come from `template_of`; render them inside `budget()`."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, LoopControlExtension],
            finalize=_printed,
        )
        self.filters.update(tojson=tojson, _loop=_loop, _concat=_concat)
        for name, function in list(self.filters.items()):
            passed = getattr(function, "jinja_pass_arg", None)
            self.filters[name] = _bounded(name, function, 1 if passed else 0)
        self.globals.update(
            raise_exception=_raise_exception,
            strftime_now=lambda form: datetime.now().strftime(form),
            dict=lambda *args, **kwargs: dict(*args, **kwargs),
            namespace=_Namespace,
        )
        self.globals.pop("lipsum", None)

    def template_of(self, source: str) -> jinja2.Template:
        """Compile. Raises TemplateError for one too large or wrong."""
        if len(source) > MAX_SOURCE:
            raise TemplateError(f"the chat template has more than {MAX_SOURCE} characters")
        with budget():
            return self.from_string(_Counted().visit(self.parse(source)))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Every call a template makes."""
        _budget.get().step()
        given = tuple(_settled(item) for item in args)
        bound = getattr(__obj, "__wrapped__", __obj)  # jinja2 wraps str.format
        owner = getattr(bound, "__self__", None)
        if isinstance(owner, str):
            _guard(f"str.{bound.__name__}", (owner, *given, *kwargs.values()))
        else:
            _measure((*given, *kwargs.values()))
        result = _settled(super().call(__context, __obj, *given, **kwargs))
        _budget.get().made(result)
        return result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """`+`, `*`, `**` and `%`."""
        _budget.get().step()
        if operator == "*":
            _check_times(left, right)
        elif operator == "**":
            if not isinstance(left, int | float) or not isinstance(right, int | float):
                raise TemplateError("the chat template takes a power of what is no number")
            if isinstance(left, int) and left.bit_length() * abs(right) > MAX_BITS:
                raise _too_large()
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
            _measure((left, right))
        elif operator == "+":
            _measure((left, right))
        result = super().call_binop(context, operator, left, right)
        _budget.get().made(result)
        return result


def _check_times(left: Any, right: Any) -> None:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, str | list | tuple) and isinstance(other, int):
            _product(_measure(one), max(other, 0))
    if isinstance(left, int) and isinstance(right, int):
        _product(1 if left.bit_length() + right.bit_length() <= MAX_BITS else MAX_SIZE + 1)


def _printed(value: Any) -> Any:
    """jinja2 calls this with whatever a template prints."""
    value = _settled(value)
    if (spent := _budget.get(None)) is not None:
        spent.made(value)
    return value


def _concat(parts: list[Any]) -> str:
    return "".join(str(part) for part in parts)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers writes it into prompts: Hangul stays, nothing is HTML-escaped."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
