"""Spans of OpenTelemetry, in the words of its conventions for generative AI. Off, and nearly free, until `enable`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_OFF: Mapping[str, Any] = {"tracer": None, "content": False}
_state: dict[str, Any] = dict(_OFF)


def enable(tracer_provider: Any = None, *, content: bool = False) -> None:
    """Report searches, reasonings, and calls of language and embedding models as spans."""
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "opentelemetry":
            raise
        raise ImportError('Tracing needs OpenTelemetry: pip install "sire-rag[otel]"') from error
    from sire_core.version import __version__

    _state.update(tracer=trace.get_tracer("sire_core", __version__, tracer_provider), content=content)


def disable() -> None:
    """Report nothing more."""
    _state.update(_OFF)


def records_content() -> bool:
    """True if spans may hold what was asked and found."""
    return bool(_state["content"])


class TraceSpan:
    """A span, or nothing when tracing is off; as a context manager it ends with its block, and notes what failed.

    It does not become the current span of its context by itself: see `current`.
    """

    __slots__ = ("_span",)

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; those that are None are left out."""
        if self._span is not None:
            for name, value in attributes.items():
                if value is not None:
                    self._span.set_attribute(name, value)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Spans that begin in this block stand below this one. For blocks that do not yield to anybody else."""
        if self._span is None:
            yield
            return
        from opentelemetry import trace

        with trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            yield

    def end(self, error: BaseException | None = None) -> None:
        """End it."""
        if self._span is None:
            return
        if error is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", type(error).__qualname__)
            self._span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        self._span.end()

    def __enter__(self) -> TraceSpan:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error)


_NO_SPAN = TraceSpan()


def start(operation: str, subject: str, attributes: Mapping[str, Any], *, remote: bool = False) -> TraceSpan:
    """Begin a span below the current one."""
    tracer = _state["tracer"]
    if tracer is None:
        return _NO_SPAN
    from opentelemetry.trace import SpanKind

    kind = SpanKind.CLIENT if remote else SpanKind.INTERNAL
    span = TraceSpan(tracer.start_span(f"{operation} {subject}", kind=kind))
    span.set({"gen_ai.operation.name": operation, **attributes})
    return span
