// Draws the layers of a board from a scene, as arena/web/boards.py does (a test compares them).
// scene: {fen, last, check, arrows: [{uci, kind, weight}]}, the first arrow on top.

const CELL = 60;
const GEOMETRY = {
  chess: { files: 8, ranks: 8, inset: 46 },
  janggi: { files: 9, ranks: 10, inset: 42 },
};
const UCI = /^([a-i](?:10|[1-9]))([a-i](?:10|[1-9]))/;
const SVG = "http://www.w3.org/2000/svg";

export function gameOf(svg) {
  return svg.classList.contains("janggi") ? "janggi" : "chess";
}

export function draw(svg, scene, { flip = false, script = svg.dataset.script } = {}) {
  const game = gameOf(svg);
  svg.toggleAttribute("data-flip", flip);
  if (flip) svg.dataset.flip = "1";
  svg.dataset.script = script;
  layer(svg, "marks").replaceChildren(...marks(game, scene, flip));
  layer(svg, "pieces").replaceChildren(...pieces(game, scene.fen, flip, script));
  layer(svg, "arrows").replaceChildren(...[...(scene.arrows ?? [])].reverse().flatMap((a) => arrow(game, a, flip)));
}

export function pieceId(game, letter, script) {
  return game === "chess" ? `c-${letter}` : `j-${script}-${letter}`;
}

export function centre(game, square, flip) {
  const { files, ranks, inset } = GEOMETRY[game];
  const file = square.charCodeAt(0) - 97, rank = Number(square.slice(1)) - 1;
  const column = flip ? files - 1 - file : file, row = flip ? rank : ranks - 1 - rank;
  return [inset + column * CELL, inset + row * CELL];
}

export function element(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function layer(svg, name) {
  return svg.querySelector(`g.${name}`);
}

function* placement(fen) {
  const rows = fen.split(" ", 1)[0].split("/");
  const canonical = rows.length === 10 ? { H: "N", E: "B", h: "n", e: "b" } : {};
  for (const [row, text] of rows.entries()) {
    let file = 0;
    for (const char of text) {
      if (char >= "0" && char <= "9") file += Number(char);
      else yield [String.fromCharCode(97 + file++) + (rows.length - row), canonical[char] ?? char];
    }
  }
}

function pieces(game, fen, flip, script) {
  return [...placement(fen)].map(([square, letter]) => {
    const [x, y] = centre(game, square, flip);
    return element("use", { href: `#${pieceId(game, letter, script)}`, x, y });
  });
}

function marks(game, scene, flip) {
  const ends = scene.last ? UCI.exec(scene.last) : null;
  const shapes = [];
  for (const square of new Set(ends ? [ends[1], ends[2]] : [])) shapes.push(mark(game, square, "last", flip));
  if (ends && ends[1] === ends[2]) {
    const [x, y] = centre(game, ends[1], flip);
    shapes.push(element("text", { class: "pass", x, y: y - 33 }, "pass"));
  }
  if (scene.check) shapes.push(mark(game, scene.check, "check", flip));
  return shapes;
}

function mark(game, square, kind, flip) {
  const [x, y] = centre(game, square, flip);
  if (game === "chess") {
    return element("path", { class: kind, d: `M${x - CELL / 2},${y - CELL / 2}h${CELL}v${CELL}h-${CELL}z` });
  }
  return element("circle", { class: kind, cx: x, cy: y, r: 29 });
}

function onBoard(game, square) {
  const { files, ranks } = GEOMETRY[game];
  return square.charCodeAt(0) - 97 < files && Number(square.slice(1)) <= ranks;
}

function arrow(game, { uci, kind, weight }, flip) {
  const ends = UCI.exec(uci);
  if (!ends || !onBoard(game, ends[1]) || !onBoard(game, ends[2])) return [];
  const share = Math.min(Math.max(weight, 0), 1), refused = kind === "refused";
  const width = refused ? 5 : 3 + 11 * share;
  const opacity = refused ? 0.8 : 0.35 + 0.5 * share;
  const note = refused ? "refused" : `${(100 * share).toFixed(1)} %`;
  const start = centre(game, ends[1], flip), end = centre(game, ends[2], flip);
  const shape = ends[1] === ends[2] ? ring(start, width) : shaft(start, end, width);
  const title = element("title", {}, `${uci}: ${note}`);
  return [element("g", { class: `arrow ${kind}`, opacity: opacity.toFixed(2) }, title, ...shape)];
}

function ring([x, y], width) {
  return [element("circle", { cx: x, cy: y, r: 26, "stroke-width": width.toFixed(1) })];
}

function shaft(start, end, width) {
  const length = Math.hypot(end[0] - start[0], end[1] - start[1]);
  const ux = (end[0] - start[0]) / length, uy = (end[1] - start[1]) / length;
  const wing = 5 + width;
  const tip = [end[0] - 6 * ux, end[1] - 6 * uy];
  const neck = [tip[0] - 1.6 * wing * ux, tip[1] - 1.6 * wing * uy];
  const corners = [tip, [neck[0] - wing * uy, neck[1] + wing * ux], [neck[0] + wing * uy, neck[1] - wing * ux]];
  const line = {
    x1: (start[0] + 10 * ux).toFixed(1), y1: (start[1] + 10 * uy).toFixed(1),
    x2: neck[0].toFixed(1), y2: neck[1].toFixed(1), "stroke-width": width.toFixed(1),
  };
  const points = corners.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  return [element("line", line), element("polygon", { points })];
}

export function moveNumber(startFen, ply) {
  const turn = ply - 1 + (startFen.split(" ")[1] === "b" ? 1 : 0);
  return `${Math.floor(turn / 2) + 1}${turn % 2 ? "…" : "."}`;
}

// UCI with Latin pieces (`pass` for a pass), else as it is recorded.
export function spelt({ uci, san }, script) {
  if (script !== "latin" || !uci) return san;
  const half = uci.length / 2;
  return uci.slice(0, half) === uci.slice(half) ? "pass" : uci;
}
