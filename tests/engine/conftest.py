"""After every test, each Engine it made is asked whether queue and blocks are in order."""

from collections.abc import Iterator

import pytest

from engine.engine import Engine


@pytest.fixture(autouse=True)
def _integrity(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Running or closed; a closed one holds no block any more."""
    made: list[Engine] = []
    init = Engine.__init__

    def recorded(self: Engine, *args: object, **settings: object) -> None:
        init(self, *args, **settings)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(Engine, "__init__", recorded)
    yield
    for engine in made:
        was_open = not engine.is_dead
        usage = engine.check_integrity()
        if was_open:
            engine.close()
            usage = engine.check_integrity()
        assert usage.used == 0, f"{usage.used} blocks are held after the end"
