// One game in one file: moves and panels lie in the page.

import { listen, state, take } from "./stepper.js";

const view = JSON.parse(document.getElementById("data").textContent);
const scripts = new Set(["hanja", "hangul", "latin"]);
const asked = new URLSearchParams(location.hash.slice(1));

Object.assign(state, {
  ply: Number(asked.get("ply") ?? view.moves.length) || 0,
  script: scripts.has(asked.get("script")) ? asked.get("script") : state.script,
  panelOf: async (ply) => document.getElementById(`panel-${ply}`)?.content.cloneNode(true) ?? null,
  remember: () => history.replaceState(null, "", `#ply=${state.ply}&script=${state.script}`),
});
take(view);
listen();
document.body.dataset.ready = "1";
