// One game on the page: board, bars, move list and steps. Where the moves and the panels come from
// is the business of game.js (a server, live) or share.js (one file).

import { draw, element, moveNumber, pieceId, spelt } from "./board.js";

const MAX_BELIEFS = 5, LOW_MASS = 0.5;
const rows = document.getElementById("rows"), list = document.getElementById("moves");
const panel = document.getElementById("panel"), board = document.querySelector("#board .board");

// panelOf(ply) gives a promise of a fragment, or null where there is nothing new to show;
// remember() is told after each step.
export const state = {
  view: null,
  ply: 0,
  following: false,
  flip: board.hasAttribute("data-flip"),
  script: board.dataset.script,
  panelOf: async () => null,
  remember: () => {},
};

function sceneOf(game, move) {
  if (!move) return { fen: game.start_fen };
  const refused = move.refused.filter((one) => one.uci).map((one) => ({ uci: one.uci, kind: "refused", weight: 1 }));
  const beliefs = move.top.slice(0, MAX_BELIEFS).map(([uci, weight]) => ({ uci, kind: "belief", weight }));
  return { fen: move.fen, last: move.uci || null, check: move.check, arrows: [...refused, ...beliefs] };
}

function seconds(value) {
  if (value === null) return "–";
  if (value >= 99.95) return value.toFixed(0);
  return value.toFixed(value >= 9.995 ? 1 : value >= 0.1 ? 2 : 3);
}

function flag(kind, title, text) {
  const node = document.createElement("span");
  node.className = kind;
  node.title = title;
  node.textContent = text;
  return node;
}

function row(move) {
  const node = document.getElementById("row").content.firstElementChild.cloneNode(true);
  node.dataset.ply = move.ply;
  node.querySelector("a").href = `?ply=${move.ply}`;
  node.querySelector(".no").textContent = moveNumber(state.view.game.start_fen, move.ply);
  node.querySelector(".san").textContent = spelt(move, state.script) || "(no move)";
  const flags = node.querySelector(".flags");
  if (move.refused.length) flags.append(flag("bad", "refused answers", `✗${move.refused.length}`));
  if (move.legal_mass !== null && move.legal_mass < LOW_MASS) flags.append(flag("warn", "legal moves held under half of the probability", "◔"));
  if (move.random_move) flags.append(flag("bad", "drawn at random by the policy, not the agent's choice", "rnd"));
  const cells = node.querySelectorAll("td.num");
  const tokens = move.prompt_tokens;
  [
    seconds(move.seconds), seconds(move.ttft_s), seconds(move.queue_s),
    tokens ? `${tokens}→${move.completion_tokens}` : "–",
    tokens ? `${Math.round((100 * move.cached_tokens) / tokens)} %` : "–",
  ].forEach((text, index) => { cells[index].textContent = text; });
  return node;
}

function bars(move) {
  for (const bar of document.querySelectorAll(".bar")) {
    const side = Number(bar.dataset.side), { game, moves } = state.view;
    const taken = move ? move.taken[side] : "";
    bar.querySelector(".taken").replaceChildren(...[...taken].map((letter) => element(
      "svg", { class: "piece", viewBox: "-30 -30 60 60" },
      element("use", { href: `#${pieceId(game.game, letter, state.script)}` }),
    )));
    const points = bar.querySelector(".points");
    points.textContent = move ? `${move.points[side]} pts` : points.dataset.start;
    const mine = moves.slice(0, state.ply).filter((one) => one.side === side && one.clock_s !== null).pop();
    bar.querySelector(".clock").textContent = mine ? `${seconds(mine.clock_s)} s` : "";
  }
}

function outcome() {
  const { game } = state.view, node = document.getElementById("outcome");
  if (game.status === "running") return;
  const result = document.createElement("strong"), detail = document.createElement("bdi");
  result.textContent = game.status === "finished" ? game.result : game.status;
  detail.textContent = game.detail || game.termination;
  node.replaceChildren(result, " ", detail);
  const winner = { "1-0": 0, "0-1": 1 }[game.result];
  for (const bar of document.querySelectorAll(".bar")) bar.classList.toggle("won", Number(bar.dataset.side) === winner);
}

async function fillPanel() {
  const ply = state.ply, content = await state.panelOf(ply);
  if (content && ply === state.ply) panel.replaceChildren(content);
}

export function show(ply, { following = ply === state.view.moves.length, scroll = true } = {}) {
  const { game, moves } = state.view;
  state.ply = Math.max(0, Math.min(ply, moves.length));
  state.following = following;
  const move = moves[state.ply - 1];
  draw(board, sceneOf(game, move), { flip: state.flip, script: state.script });
  bars(move);
  rows.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const current = rows.querySelector(`[data-ply="${state.ply}"]`);
  current?.setAttribute("aria-current", "true");
  if (scroll && current) reveal(current);
  fillPanel();
  state.remember();
}

// Scroll the list alone, never the page.
function reveal(node) {
  const head = 34, top = node.offsetTop - head, bottom = node.offsetTop + node.offsetHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

function flip() {
  state.flip = !state.flip;
  const top = document.getElementById("bars-top"), bottom = document.getElementById("bars-bottom");
  const held = [...top.childNodes];
  top.replaceChildren(...bottom.childNodes);
  bottom.replaceChildren(...held);
  show(state.ply, { following: state.following, scroll: false });
}

function markScript() {
  for (const one of document.querySelectorAll("a[data-script]")) {
    if (one.dataset.script === state.script) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}

function setScript(name) {
  state.script = name;
  markScript();
  rows.replaceChildren(...state.view.moves.map(row));
  show(state.ply, { following: state.following });
}

// Take a whole game, and keep the place: the last ply for one who follows.
export function take(view) {
  state.view = view;
  rows.replaceChildren(...view.moves.map(row));
  outcome();
  markScript();
  show(state.following ? view.moves.length : state.ply, { following: state.following });
}

export function append(move) {
  state.view.moves.push(move);
  rows.append(row(move));
  if (state.following) show(state.view.moves.length, { following: true });
}

const steps = {
  ArrowLeft: () => show(state.ply - 1, { following: false }),
  ArrowRight: () => show(state.ply + 1),
  Home: () => show(0, { following: false }),
  End: () => show(state.view.moves.length),
  f: flip,
};

function onClick(selector, act) {
  document.querySelector(selector)?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const hit = act(event);
    if (hit !== false) event.preventDefault();
  });
}

// Listen to keys and clicks, once the first game is there.
export function listen() {
  onClick("#to-start", steps.Home);
  onClick("#back", steps.ArrowLeft);
  onClick("#forward", steps.ArrowRight);
  onClick("#to-end", steps.End);
  onClick("#flip", flip);
  onClick(".scripts", (event) => {
    const chosen = event.target.closest("[data-script]");
    return chosen ? setScript(chosen.dataset.script) : false;
  });
  rows.addEventListener("click", (event) => {
    const hit = event.target.closest("tr");
    if (!hit || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(Number(hit.dataset.ply));
  });
  document.addEventListener("keydown", (event) => {
    const busy = event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea");
    if (busy || !steps[event.key] || event.target.closest("pre")) return;
    event.preventDefault();
    steps[event.key]();
  });
}
