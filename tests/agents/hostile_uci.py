"""An engine that speaks UCI and misbehaves on purpose: `python hostile_uci.py MODE`.

MODE: crash, stall, illegal, none, flood, long_line, mute, garbage, slow, die_late, good.
"""

import sys
import time

MODE = sys.argv[1]
FIRST = "e2e4"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def go() -> None:
    if MODE == "crash":
        sys.stderr.write("assertion failed: the tree is on fire\n")
        sys.stderr.flush()
        sys.exit(7)
    if MODE == "stall":
        time.sleep(600)
    if MODE == "flood":
        while True:
            say("info string " + "x" * 200)
    if MODE == "long_line":
        sys.stdout.write("x" * 1_000_000)
        sys.stdout.flush()
        time.sleep(600)
    if MODE == "illegal":
        say("bestmove e2e5")
    elif MODE == "none":
        say("bestmove (none)")
    elif MODE == "garbage":
        say("bestmove Tuesday")
    else:
        say("info depth 1 multipv 1 score cp 31 pv e2e4")
        say("info depth 2 multipv 2 score cp -99 pv a2a3")
        say(f"bestmove {FIRST}")
    if MODE == "die_late":
        sys.exit(0)


for line in sys.stdin:
    word = line.split()[0] if line.split() else ""
    if word == "uci":
        if MODE == "mute":
            time.sleep(600)
        say("id name hostile")
        say("option name Hash type spin default 16 min 1 max 64")
        say("option name UCI_Elo type spin default 1350 min 1350 max 2850")
        say("option name UCI_LimitStrength type check default false")
        if MODE == "none":
            say("option name UCI_Variant type combo default chess var chess var janggi")
        say("uciok")
    elif word == "isready":
        say("readyok")
    elif word == "go":
        go()
    elif word == "quit":
        break
