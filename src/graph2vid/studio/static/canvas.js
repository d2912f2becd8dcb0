// The graph as a picture: boxes to choose, a grip under each to draw a link from, arrows to choose.

import { svg } from "/view/dom.js";
import { reasonsOf } from "./inspector.js";
import { wayOf } from "/view/graph.js";

const MARGIN = 14;

export function makeCanvas(editor) {
  const { project } = editor;
  const { picture, flow } = project;
  const [width, height] = [picture.width + 2 * MARGIN, picture.height + 2 * MARGIN + 8];
  const label = editor.linking ? "Choose the step that must wait; Enter links, Escape gives up" : "Flow graph; arrow keys move, Enter chooses a step, L links it, Delete removes what is highlighted";
  const drawing = svg("svg", { class: `graph editing${editor.linking ? " linking" : ""}`, viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, role: "group", "aria-label": label });
  for (const edge of picture.edges) drawing.append(arrow(editor, edge));
  flow.steps.forEach((step, place) => drawing.append(node(editor, step, picture.boxes[place])));
  const loose = svg("path", { class: "loose-link" });
  drawing.append(loose);
  dragging(editor, drawing, loose);

  drawing.addEventListener("click", (event) => {
    if (editor.drawn) return; // the end of a link that was drawn
    const hit = event.target.closest(".node, .edge");
    if (!hit) editor.choose(null);
    else if (hit.dataset.step === undefined) editor.choose({ edge: [hit.dataset.before, hit.dataset.after] });
    else take(editor, hit.dataset.step);
  });
  drawing.addEventListener("dblclick", (event) => {
    const hit = event.target.closest(".node");
    if (!hit) return;
    editor.choose({ step: hit.dataset.step });
    const words = /** @type {HTMLTextAreaElement} */ (document.querySelector(".inspector textarea"));
    words.focus();
    words.select();
  });
  drawing.addEventListener("keydown", (event) => {
    const id = event.target.closest(".node")?.dataset.step;
    if (id === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { Enter: () => take(editor, id), " ": () => take(editor, id), l: () => editor.link(id), L: () => editor.link(id) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  return drawing;
}

function take(editor, id) {
  if (editor.linking) editor.linkTo(id);
  else editor.choose({ step: id });
}

function node(editor, step, { x, y, width, height, lines, mark, colour, ink }) {
  const { chosen, linking, project } = editor;
  const isChosen = chosen?.step === step.id;
  const isEnd = chosen?.edge?.includes(step.id);
  const isOptional = step.optional ?? false;
  const waits = project.flow.edges.filter(([, after]) => after === step.id).map(([before]) => before);
  const name = String(editor.number(step.id));
  const names = [`Step ${name}: ${step.text}`, mark, waits.length ? `waits for ${waits.map(editor.number).join(", ")}` : "waits for nothing"];
  const badge = Math.max(30, 14 + 7.4 * name.length);
  return svg(
    "g",
    {
      class: `node${isChosen ? " on" : ""}${isEnd ? " end" : ""}${editor.matches(step) ? " found" : ""}${isOptional ? " optional" : ""}${linking === step.id ? " from" : ""}`,
      "data-step": step.id,
      "data-key": `node-${step.id}`,
      role: "button",
      tabindex: -1,
      "aria-label": names.filter(Boolean).join(", "),
      "aria-pressed": String(chosen?.step === step.id),
      transform: `translate(${x} ${y})`,
      style: { "--colour": colour, "--ink": ink },
    },
    svg("rect", { class: "box", width, height, rx: 10 }),
    svg("rect", { class: "badge", x: 11, y: 10, width: badge, height: 20, rx: 6 }),
    svg("text", { class: "badge-text", x: 11 + badge / 2, y: 20.5 }, name),
    mark ? svg("text", { class: "when mark", x: width - 13, y: 25 }, mark) : null,
    lines.map((words, row) => svg("text", { class: "words", x: 13, y: 50 + 19 * row }, words)),
    svg("circle", { class: "link-grip", cx: width / 2, cy: height, r: 7 }, svg("title", null, "Drag to the step that must wait for this one")),
  );
}

function arrow(editor, edge) {
  const { steps } = editor.project.flow;
  const [before, after] = [steps[edge.from].id, steps[edge.to].id];
  const { chosen } = editor;
  const isChosen = chosen?.edge && chosen.edge[0] === before && chosen.edge[1] === after;
  const isBeside = chosen?.step === before || chosen?.step === after;
  const fights = editor.fights(before, after);
  const { shaft, head } = wayOf(editor.project.picture, edge);
  return svg(
    "g",
    { class: `edge${isChosen ? " on" : ""}${isBeside ? " beside-chosen" : ""}${fights ? " fights" : ""}${edge.implied ? " implied" : ""}${edge.confidence < 1 ? " unsure" : ""}`, "data-before": before, "data-after": after, "aria-hidden": "true" },
    svg("title", null, [`${editor.number(before)} → ${editor.number(after)}`, ...(fights ? ["fights what the video shows"] : []), ...reasonsOf(editor.project.flow, before, after)].join("\n")),
    svg("path", { class: "hit", d: shaft }),
    svg("path", { class: "shaft", d: shaft }),
    svg("path", { class: "head", d: head }),
  );
}

// Draws a link from a grip to the step under the pointer.
function dragging(editor, drawing, loose) {
  let from = null;
  const here = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    return [point.x, point.y];
  };
  const under = (event) => /** @type {SVGElement | null} */ (document.elementFromPoint(event.clientX, event.clientY)?.closest?.(".node"))?.dataset.step;
  drawing.addEventListener("pointerdown", (event) => {
    if (!event.target.matches(".link-grip")) return;
    event.preventDefault();
    from = event.target.closest(".node").dataset.step;
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const { boxes } = editor.project.picture;
    const box = boxes[editor.project.flow.steps.findIndex((step) => step.id === from)];
    const [x, y] = here(event);
    loose.setAttribute("d", `M${box.x + box.width / 2} ${box.y + box.height}L${x} ${y}`);
    const target = under(event);
    for (const one of drawing.querySelectorAll(".node")) one.classList.toggle("target", one.dataset.step === target && target !== from);
  });
  const end = (event) => {
    if (from === null) return;
    const [start, target] = [from, event.type === "pointerup" ? under(event) : undefined];
    from = null;
    loose.removeAttribute("d");
    for (const one of drawing.querySelectorAll(".target")) one.classList.remove("target");
    if (target === undefined || target === start) return;
    editor.drawn = true;
    setTimeout(() => (editor.drawn = false));
    editor.linking = start;
    editor.linkTo(target);
  };
  drawing.addEventListener("pointerup", end);
  drawing.addEventListener("pointercancel", end);
}
