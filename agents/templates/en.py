"""The prompts in English."""

from .layout import Words

_ANSWER = (
    "Each time you are asked, answer with one legal move and nothing else. "
    "Instead of a move you may answer `resign`, or `draw` to offer or accept a draw."
)

ENGLISH = Words(
    code="en",
    system={
        "chess": "You are a strong chess player. You play a game of chess by the usual rules. "
        "White moves first. You are shown all moves of the game so far, oldest first. " + _ANSWER,
        "janggi": "You are a strong player of janggi (Korean chess). The board has files a to i "
        "and ranks 1 to 10; Cho (upper case) starts on ranks 1 to 4 and moves first, Han (lower "
        "case) on ranks 7 to 10. Palaces are d1-f3 and d8-f10. "
        "R chariot: any distance in a straight line, also along palace diagonals. "
        "C cannon: jumps over exactly one piece in a straight line; neither that piece nor its "
        "prey may be a cannon. N horse: one step straight, then one diagonally outward; "
        "B elephant: one step straight, then two diagonally outward; both can be blocked. "
        "K general and A guard: one step along the lines inside their palace. "
        "P soldier: one step forward or sideways, never back. "
        "Check must be answered; mate wins. A player may pass, written as the general's square "
        "twice. Two passes in a row, or a pass while the generals face each other (bikjang), may "
        "end the game on points: R 13, C 7, N 5, B 3, A 3, P 2, and 1.5 extra for Han. "
        "You are shown all moves of the game so far, oldest first. " + _ANSWER,
    },
    notation="Write moves in {notation}, such as {example}.",
    start="Start position: {fen}",
    moves="Moves: {moves}",
    no_moves="Moves: none yet",
    fen="Position (FEN): {fen}",
    board="Board:\n{board}",
    legal="Legal moves: {moves}",
    side="You are {side}.",
    sides={"white": "White", "black": "Black", "cho": "Cho", "han": "Han"},
    points="Points: {first} {first_points}, {second} {second_points}.",
    check="You are in check.",
    repeated="This position has stood {times} times.",
    bikjang="The generals face each other (bikjang).",
    opponent_passed="Your opponent passed.",
    pass_effect={
        "illegal": "You may not pass.",
        "continues": "",
        "wins": "Passing now ends the game and you win.",
        "loses": "Passing now ends the game and you lose.",
        "draws": "Passing now ends the game in a draw.",
    },
    quiet_left="{plies} plies until the game ends for lack of progress.",
    plies_left="{plies} plies left.",
    draw_offered="Your opponent offers a draw.",
    no_resign="You may not resign.",
    no_draw_offer="You may not offer a draw.",
    ask="Your move:",
)
