// One game of a server: its moves as they come, its panels as they are asked for.

import { follow, json, persist, showLink } from "./live.js";
import { append, listen, state, take } from "./stepper.js";

const PANEL_DELAY_MS = 60, MAX_PANELS = 60;
const stage = document.getElementById("stage"), link = document.getElementById("link");
const id = stage.dataset.game, run = stage.dataset.run;
const panels = new Map();
let asked = null, stop = null;

async function panelOf(ply) {
  asked?.abort();
  const mine = (asked = new AbortController());
  const key = `${ply} ${state.script}`;
  if (panels.has(key)) return panels.get(key).cloneNode(true);
  await new Promise((wake) => setTimeout(wake, PANEL_DELAY_MS)); // for one who holds a key down
  if (mine.signal.aborted) return null;
  try {
    const answer = await fetch(`/games/${id}/plies/${ply}?script=${state.script}`, { signal: mine.signal });
    if (!answer.ok) return null;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const content = document.createDocumentFragment();
    content.append(...page.body.childNodes);
    if (panels.size >= MAX_PANELS) panels.delete(panels.keys().next().value);
    panels.set(key, content.cloneNode(true));
    return content;
  } catch {
    return null; // turned to another ply, or the server is away: the next step asks again
  }
}

function remember() {
  const query = new URLSearchParams(location.search);
  if (state.following) query.delete("ply");
  else query.set("ply", state.ply);
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  localStorage.setItem("script", state.script);
}

async function load() {
  const view = await persist(() => json(`/api/games/${id}`));
  panels.clear();
  take(view);
}

function message(event) {
  const { moves, game, seq } = state.view;
  if (event.seq <= seq) return;
  state.view.seq = event.seq;
  if (event.kind !== "move" || !event.move || event.move.ply > moves.length + 1) return void load();
  if (event.move.ply === moves.length + 1 && game.status === "running") append(event.move);
}

Object.assign(state, {
  panelOf,
  remember,
  ply: Number(stage.dataset.ply),
  following: stage.dataset.follow === "1",
  script: new URLSearchParams(location.search).get("script") ?? localStorage.getItem("script") ?? state.script,
});
await load();
listen();
if (state.view.game.status === "running") {
  stop = follow(run, id, state.view.seq, {
    message,
    reset: load,
    link: (connected) => {
      showLink(link, connected);
      if (state.view.game.status !== "running") stop?.();
    },
  });
}
document.body.dataset.ready = "1";
