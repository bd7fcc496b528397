// The wall: every board of a run, live.

import { draw, moveNumber, spelt } from "./board.js";
import { follow, json, persist, showLink } from "./live.js";

const MAX_TILES = 50;
const wall = document.getElementById("wall");
const counts = Object.fromEntries(["done", "slots", "playing", "run-status"].map((id) => [id, document.getElementById(id)]));
const run = wall.dataset.run, script = wall.dataset.script;
let last = Number(wall.dataset.seq), fetching = false;

function find(id) {
  return wall.querySelector(`[data-game="${Number(id)}"]`);
}

function put(tile, { ply, fen, last: move, check, san }, startFen) {
  draw(tile.querySelector(".board"), { fen, last: move, check }, { script });
  tile.querySelector(".san bdi").textContent = ply ? `${moveNumber(startFen, ply)} ${spelt({ uci: move, san }, script)}` : "start";
}

function end(tile, game) {
  tile.classList.toggle("done", game.status !== "running");
  tile.querySelector(".state").textContent = game.status === "running" ? "playing" : game.result;
}

function make(game) {
  const tile = document.getElementById(`tile-${game.game}`).content.firstElementChild.cloneNode(true);
  tile.href = `/games/${game.id}`;
  tile.dataset.game = game.id;
  tile.dataset.start = game.start_fen;
  tile.querySelector(".second bdi").textContent = game.second;
  tile.querySelector(".first bdi").textContent = game.first;
  end(tile, game);
  return tile;
}

function start(game) {
  if (find(game.id)) return;
  document.getElementById("waiting")?.remove();
  const tile = make(game);
  put(tile, { ply: 0, fen: game.start_fen }, game.start_fen);
  const old = [...wall.querySelectorAll(".tile.done")].pop();
  if (wall.childElementCount >= MAX_TILES && old) old.replaceWith(tile);
  else if (wall.childElementCount < MAX_TILES) wall.insertBefore(tile, wall.querySelector(".tile.done"));
}

function show(view) {
  const tiles = view.tiles.map((one) => {
    const tile = find(one.game.id) ?? make(one.game);
    put(tile, one, one.game.start_fen);
    end(tile, one.game);
    return tile;
  });
  wall.replaceChildren(...tiles);
  if (tiles.length) document.getElementById("waiting")?.remove();
  count(view.run.num_finished, view.run.num_running, view.run.status, view.run.num_slots);
  last = view.seq;
}

function count(done, playing, status, slots = counts.slots.textContent) {
  counts.done.textContent = done;
  counts.playing.textContent = Math.max(0, playing);
  counts["run-status"].textContent = status;
  counts.slots.textContent = slots;
}

async function refetch() {
  if (fetching) return;
  fetching = true;
  show(await persist(() => json(`/api/runs/${run}`)));
  fetching = false;
}

function message(event) {
  if (fetching || event.seq <= last) return;
  if (event.seq !== last + 1) return void refetch();
  last = event.seq;
  const done = Number(counts.done.textContent), playing = Number(counts.playing.textContent);
  const status = counts["run-status"].textContent;
  if (event.kind === "move" && event.move) {
    const tile = find(event.game_id);
    if (!tile) return;
    put(tile, { ...event.move, last: event.move.uci }, tile.dataset.start ?? "");
    tile.classList.remove("fresh");
    requestAnimationFrame(() => tile.classList.add("fresh"));
  } else if (event.kind === "game_started") {
    start(event.game);
    count(done, playing + 1, status);
  } else if (event.kind === "game_finished") {
    const tile = find(event.game_id);
    if (tile) end(tile, event.game);
    count(done + (event.game.status === "finished"), playing - 1, status);
  } else if (event.kind.startsWith("run_") || event.kind === "game_superseded") {
    refetch();
  }
}

follow(run, null, last, {
  message,
  reset: refetch,
  link: (connected) => showLink(document.getElementById("link"), connected),
});
document.body.dataset.ready = "1";
