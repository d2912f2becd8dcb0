// The flow graph in layers, from top to bottom: each step with its number and, beside it, its place in the order found.

import { absence, el, ordinal, rove, svg } from "./dom.js";
import { formatTime, percent, spokenSpan } from "./time.js";

const HEAD = 7; // of an arrow
const MARGIN = 6;

export function makeGraph(state) {
  const { graph } = state.model;
  const [width, height] = [graph.width + 2 * MARGIN, graph.height + 2 * MARGIN];
  const picture = svg("svg", {
    class: "graph",
    viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`,
    role: "group",
    "aria-label": "Flow graph; left and right follow the order found, up and down the links, Enter plays the step",
  });
  const fights = new Set(state.model.conflicts.map(({ before, after }) => `${before} ${after}`));
  for (const edge of graph.edges) picture.append(arrow(graph, edge, fights.has(`${edge.from} ${edge.to}`)));
  // In the order found, so that the reading order is the order of the video.
  for (const step of state.rows) picture.append(node(state, step));
  const box = el("div", { class: "graph-scroll" }, picture);
  const tools = makeGraphZoom(box, picture, { width, height }, state);

  const lit = () => {
    const step = state.active;
    for (const edge of picture.querySelectorAll(".edge")) {
      const { from, to } = edge.dataset;
      edge.classList.toggle("on", [from, to].includes(String(step)));
    }
    const chosen = step === null || box.matches(":hover") ? null : picture.querySelector(`.node[data-step="${step}"]`);
    if (chosen) bringInto(box, chosen);
  };
  state.on("active", lit);
  const now = () => {
    const step = state.stepAt(state.time);
    for (const other of picture.querySelectorAll(".node.now")) other.classList.toggle("now", Number(other.dataset.step) === step);
    if (step !== null) picture.querySelector(`.node[data-step="${step}"]`).classList.add("now");
  };
  state.on("time", now);
  now();

  const choose = (event) => {
    const chosen = event.target.closest(".node");
    if (chosen) state.choose(Number(chosen.dataset.step));
  };
  picture.addEventListener("click", choose);
  picture.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(event);
  });
  rove(picture, ".node", (current, key, all) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (by) return all[all.indexOf(current) + by];
    const step = Number(current.dataset.step);
    const [from, to] = key === "ArrowDown" ? ["from", "to"] : ["to", "from"];
    const edge = ["ArrowDown", "ArrowUp"].includes(key) && graph.edges.find((link) => link[from] === step);
    return edge ? picture.querySelector(`.node[data-step="${edge[to]}"]`) : null;
  });
  return { box, tools };
}

const LEAST_ZOOM = 0.08;

// Closer and farther, with Ctrl and the wheel too; at first as large as its box is wide. `kept` remembers it as `graphZoom`:
// "wide", "whole" or a number.
export function makeGraphZoom(box, picture, { width, height }, kept) {
  kept.graphZoom ??= "wide";
  const fitting = (whole) => {
    const wide = Math.max(box.clientWidth - 4, 80) / width;
    return whole ? Math.min(wide, Math.max(box.clientHeight - 4, 80) / height, 1) : Math.min(Math.max(wide, 0.7), 1);
  };
  const scale = () => (typeof kept.graphZoom === "number" ? kept.graphZoom : fitting(kept.graphZoom === "whole"));
  const size = () => {
    const by = scale();
    picture.style.setProperty("width", `${width * by}px`);
    picture.style.setProperty("height", `${height * by}px`);
  };
  const zoomTo = (wanted, event = null) => {
    const before = scale();
    const outer = box.getBoundingClientRect();
    const [x, y] = event ? [event.clientX - outer.left, event.clientY - outer.top] : [box.clientWidth / 2, box.clientHeight / 2];
    kept.graphZoom = typeof wanted === "number" ? Math.min(Math.max(wanted, LEAST_ZOOM), 2.5) : wanted;
    size();
    const by = scale() / before;
    box.scrollTo({ left: (box.scrollLeft + x) * by - x, top: (box.scrollTop + y) * by - y, behavior: "instant" });
  };
  box.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomTo(scale() * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.003)), event);
    },
    { passive: false },
  );
  const watch = new ResizeObserver(() => (box.isConnected ? size() : watch.disconnect()));
  watch.observe(box);
  if (box.isConnected) size(); // who scrolls to a step at once finds it there
  const button = (label, sign, act, kind = "round") => el("button", { type: "button", class: `button ${kind}`, "aria-label": label, title: label, onclick: act }, sign);
  return el(
    "div",
    { class: "zoom graph-zoom", role: "group", "aria-label": "Zoom of the graph" },
    button("Graph smaller", "−", () => zoomTo(scale() / 1.4)),
    button("Graph larger", "+", () => zoomTo(scale() * 1.4)),
    button("Fit the whole graph", "Fit", () => zoomTo(kept.graphZoom === "whole" ? "wide" : "whole"), "small"),
  );
}

// What the strokes mean, as far as they occur.
export function graphLegend({ model }) {
  const { steps, graph, not_shown: absent } = model;
  const entries = [
    ["absent-key", "not shown", absent.length],
    ["optional-key", "optional", steps.some((step) => step.optional)],
    ["unsure-key", "not certain", graph.edges.some((edge) => edge.confidence < 1)],
    ["fights-key", "fights the evidence", model.conflicts.length],
  ].filter(([, , there]) => there);
  if (!entries.length) return null;
  const sign = (name) => el("span", { class: `key ${name}`, "aria-hidden": "true" });
  return el("ul", { class: "legend dim small" }, entries.map(([name, text]) => el("li", null, sign(name), text)));
}

// Scrolls a box, and nothing around it.
function bringInto(box, element) {
  const [outer, inner] = [box.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
  }
  if (inner.left < outer.left || inner.right > outer.right) {
    box.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }
}

function node(state, step) {
  const { steps, graph } = state.model;
  const { x, y, width, height, lines, mark } = graph.boxes[step];
  const { number, place, text, colour, ink, optional } = steps[step];
  const spans = state.segmentsOf(step);
  const sure = state.confidenceOf(step);
  const often = spans.length > 1 ? [`${spans.length} times`] : [];
  const when = spans.length ? [spokenSpan(spans[0].start, spans[0].end), ...often] : [absence(steps[step])];
  const known = sure === null ? [] : [`${percent(sure)} sure`];
  const order = place ? [`${ordinal(place)} in the video`] : [];
  const label = [`${number ?? "–"}. ${text}`, ...order, ...when, ...known, ...(mark ? [mark] : [])].join(", ");
  const first = spans.length ? `${ordinal(place)} · ${formatTime(spans[0].start, 0)}${often.length ? ` ×${spans.length}` : ""}` : "not shown";
  const group = svg("g", {
    class: `node${spans.length ? "" : " absent"}${optional ? " optional" : ""}`,
    "data-step": step,
    role: "button",
    tabindex: -1,
    "aria-label": label,
    transform: `translate(${x} ${y})`,
    style: { "--colour": colour, "--ink": ink },
  });
  group.append(
    svg("rect", { class: "box", width, height, rx: 9 }),
    svg("rect", { class: "badge", x: 9, y: 8, width: 24, height: 18, rx: 5 }),
    svg("text", { class: "badge-text", x: 21, y: 17.5 }, number ?? "–"),
    svg("text", { class: "when", x: width - 11, y: 21 }, first),
    ...lines.map((words, row) => svg("text", { class: "words", x: 11, y: (mark ? 60 : 45) + 17 * row }, words)),
  );
  if (mark) group.append(svg("text", { class: "mark", x: 11, y: 42 }, mark));
  if (sure !== null) {
    const long = width - 22;
    group.append(
      svg("rect", { class: "meter", x: 11, y: height - 7, width: long, height: 3, rx: 1.5 }),
      svg("rect", { class: "meter-fill", x: 11, y: height - 7, width: long * sure, height: 3, rx: 1.5 }),
    );
  }
  return group;
}

// The way of an edge, from under one box to above another, and its head.
export function wayOf({ boxes }, { from, to, lanes }) {
  const [start, end] = [boxes[from], boxes[to]];
  let [x, y] = [start.x + start.width / 2, start.y + start.height];
  const [tipX, tipY] = [end.x + end.width / 2, end.y - 1];
  let shaft = `M${x} ${y}`;
  for (const [laneX, top, bottom] of [...lanes, [tipX, tipY - HEAD, tipY - HEAD]]) {
    const bend = 0.6 * (top - y);
    shaft += `C${x} ${y + bend} ${laneX} ${top - bend} ${laneX} ${top}`;
    if (bottom > top) shaft += `V${bottom}`;
    [x, y] = [laneX, bottom];
  }
  return { shaft, head: `M${tipX} ${tipY}l-4.5 ${-HEAD - 1}q4.5 2 9 0Z` };
}

function arrow(graph, edge, fights) {
  const { shaft, head } = wayOf(graph, edge);
  return svg(
    "g",
    { class: `edge${edge.confidence < 1 ? " unsure" : ""}${fights ? " fights" : ""}`, "data-from": edge.from, "data-to": edge.to, "aria-hidden": "true" },
    svg("path", { class: "shaft", d: shaft }),
    svg("path", { class: "head", d: head }),
  );
}
