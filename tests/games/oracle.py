"""pyffish asked safely: it dies on an unknown variant or a move that is no string.

Every call gets a variant of our list, a FEN of ours and UCI strings of ours, all from one place.
"""

import pyffish

from games.janggi import JanggiState

PREFIX = "fsf-"
VARIANTS = ("janggi", "janggitraditional", "janggimodern", "janggicasual")


def _question(state: JanggiState) -> tuple[str, str, list[str]]:
    variant = state.rules.removeprefix(PREFIX)
    if variant not in VARIANTS:
        raise ValueError(f"{state.rules} is no rule set of the oracle")
    return variant, state.start_fen, [move.uci for move in state.moves]


def legal_moves(state: JanggiState) -> list[str]:
    """Legal moves in UCI, sorted, from the start position and every move since."""
    return sorted(pyffish.legal_moves(*_question(state)))


def is_check(state: JanggiState) -> bool:
    return bool(pyffish.gives_check(*_question(state)))


def san(state: JanggiState, uci: str) -> str:
    variant = _question(state)[0]
    return str(pyffish.get_san(variant, state.fen(), uci, False, pyffish.NOTATION_SAN))


def end(state: JanggiState) -> str | None:
    """`win`, `loss` or `draw` for the side to move, or None: an immediate end, then an optional."""
    question = _question(state)
    ended, value = pyffish.is_immediate_game_end(*question)
    if not ended and not pyffish.legal_moves(*question):
        ended, value = True, pyffish.game_result(*question)
    if not ended:
        ended, value = pyffish.is_optional_game_end(*question)
    if not ended:
        return None
    return "draw" if value == 0 else "win" if value > 0 else "loss"
