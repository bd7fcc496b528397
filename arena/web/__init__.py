"""The viewer: pages, live events and JSON over a store that it only reads.

`boards` and `pieces` draw; `data` reads rows; `app` serves. Nothing here is imported by
`arena.cli` before somebody asks for a page, so the extra `web` stays optional.
"""
