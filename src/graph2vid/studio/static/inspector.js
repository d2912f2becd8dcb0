// What is known about the step or link that is chosen, and all that can be done to it.

import { el } from "/view/dom.js";
import { button, choice, labelled, shortened } from "./parts.js";

export function makeInspector(editor) {
  const { chosen } = editor;
  if (chosen?.step) return ofStep(editor, chosen.step);
  if (chosen?.edge) return ofEdge(editor, ...chosen.edge);
  return [
    head("Nothing chosen"),
    el("p", { class: "dim" }, "Choose a step or a link to see why it is there, and to change it."),
    el(
      "ul",
      { class: "tips small" },
      tip("Drag", "from the dot under a step to the step that must wait for it"),
      tip("Double click", "on a step to write another text"),
      tip("L", "links the step in focus"),
      tip("Del", "removes what is highlighted: a step or a link"),
      tip("Ctrl+Z", "undoes whatever you did"),
    ),
  ];
}

const tip = (key, text) => el("li", null, el("kbd", null, key), ` ${text}`);
const head = (text) => el("div", { class: "panel-head" }, el("h2", null, text));
const others = (editor, id) => editor.steps.filter((step) => step.id !== id).map((step) => [step.id, `${editor.number(step.id)}  ${shortened(step.text, 60)}`]);

function ofStep(editor, id) {
  const { flow } = editor.project;
  const words = el("textarea", { class: "field", rows: 3, maxlength: 2000, "data-key": "text" });
  words.value = editor.text(id);
  let written = words.value; // Enter and the loss of focus both tell of one change
  const rename = () => {
    const text = words.value.trim() || written;
    words.value = text;
    if (text !== written) editor.edit({ op: "rename", step: id, text });
    written = text;
  };
  words.addEventListener("change", rename);
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      rename();
    }
    if (event.key === "Escape") words.value = written;
  });
  const optional = el("input", { type: "checkbox", "data-key": "optional", checked: flow.steps.find((step) => step.id === id).optional });
  optional.addEventListener("change", () => editor.edit({ op: "optional", step: id, optional: optional.checked }));
  return [
    head(`Step ${editor.number(id)}`),
    labelled("Text", words),
    el("label", { class: "check" }, optional, el("span", null, "Optional: a video may leave it out")),
    links(editor, "Waits for", flow.edges.filter(([before, after]) => after === id && drawn(editor, before, after)), 0),
    links(editor, "Comes before", flow.edges.filter(([before, after]) => before === id && drawn(editor, before, after)), 1),
    adding(editor, id),
    instead(editor, id),
    el("details", { class: "more", open: editor.opened === "split" }, el("summary", { "data-key": "split", onclick: () => { editor.opened = editor.opened === "split" ? null : "split"; } }, "Split into several steps"), splitting(editor, id)),
    el("details", { class: "more", open: editor.opened === "merge" }, el("summary", { "data-key": "merge", onclick: () => { editor.opened = editor.opened === "merge" ? null : "merge"; } }, "Merge with another step"), merging(editor, id)),
    el("p", { class: "buttons" }, button("Remove this step", () => editor.edit({ op: "remove-step", step: id }), { sign: "bin", kind: "danger", key: "remove-step" })),
  ];
}

// A step by name; a click chooses it.
function nameOf(editor, id, most = 60) {
  return el("button", { type: "button", class: "link-name", "data-key": `go-${id}`, onclick: () => editor.choose({ step: id }) }, el("strong", null, editor.number(id)), ` ${shortened(editor.text(id), most)}`);
}

function links(editor, title, edges, end) {
  const items = edges.map(([before, after]) => {
    const other = end ? after : before;
    return el(
      "li",
      { class: "link" },
      nameOf(editor, other),
      why(editor, before, after),
      tools(editor, before, after),
    );
  });
  return el("div", { class: "links" }, el("h3", null, title), items.length ? el("ul", null, items) : el("p", { class: "dim small" }, "nothing"));
}

export function reasonsOf(flow, before, after) {
  const found = flow.reasons.filter((reason) => reason.before === before && reason.after === after);
  return found.map((reason) => (reason.words ? `${reason.rule}: ${reason.words}` : reason.rule));
}

function why(editor, before, after) {
  const sure = editor.project.flow.edges.find((edge) => edge[0] === before && edge[1] === after)?.[2];
  const weak = [el("p", { class: "reason dim small" }, sure === undefined ? "certain" : `${Math.round(100 * sure)}% sure`)];
  const conflict = editor.fights(before, after);
  const fewer = conflict?.relieved ? `; without it ${conflict.relieved === 1 ? "one step" : `${conflict.relieved} steps`} fewer would be doubtful` : "";
  const fights = conflict ? [el("p", { class: "reason fights-note small" }, `It fights what the video shows${fewer}.`), button("Relax: remove it and ground again", () => editor.relax(before, after), { kind: "small relax", key: `relax-${before}-${after}` })] : [];
  const implied = drawn(editor, before, after)?.implied ? [el("p", { class: "reason dim small" }, "Other links say so already.")] : [];
  const said = reasonsOf(editor.project.flow, before, after).map((words) => el("p", { class: "reason dim small" }, words));
  return el("div", null, fights, said, weak, implied);
}

// The edge as it is drawn; guesses that surer ones imply are not.
function drawn(editor, before, after) {
  const { steps } = editor.project.flow;
  return editor.project.picture.edges.find((edge) => steps[edge.from].id === before && steps[edge.to].id === after);
}

function tools(editor, before, after) {
  const name = `${editor.number(before)} → ${editor.number(after)}`;
  return el(
    "div",
    { class: "link-tools" },
    button("Reverse", () => editor.edit({ op: "reverse-edge", before, after }), { sign: "turn", kind: "small", key: `turn-${name}`, "aria-label": `Reverse ${name}` }),
    button("Remove", () => editor.edit({ op: "remove-edge", before, after }), { sign: "cross", kind: "small", key: `cut-${name}`, "aria-label": `Remove ${name}` }),
  );
}

function adding(editor, id) {
  const rest = others(editor, id);
  if (!rest.length) return null;
  const way = choice([["waits", "waits for"], ["before", "comes before"]], { value: "waits", key: "add-way", label: "Kind of link" });
  const other = choice(rest, { value: rest[0][0], key: "add-other", label: "Other step" });
  const add = () => editor.edit({ op: "add-edge", ...(way.value === "waits" ? { before: other.value, after: id } : { before: id, after: other.value }) });
  return el("div", { class: "links" }, el("h3", null, "Add a link"), el("div", { class: "form-row" }, el("span", { class: "small" }, "This step"), way, other, button("Add", add, { sign: "link", kind: "small", key: "add-link" })));
}

// The other branches of the choice that a step belongs to.
function alternativesOf(flow, id) {
  const group = flow.alternatives?.find((branches) => branches.flat().includes(id)) ?? [];
  return group.filter((branch) => !branch.includes(id));
}

function instead(editor, id) {
  const found = alternativesOf(editor.project.flow, id);
  const rest = others(editor, id).filter(([other]) => !found.flat().includes(other));
  const branches = found.map((branch) => el("li", { class: "link" }, branch.map((other) => nameOf(editor, other))));
  const stop = button("Do it in any case", () => editor.edit({ op: "remove-alternative", step: id }), { sign: "cross", kind: "small", key: "no-alternative" });
  const shown = found.length ? [el("ul", null, branches), el("div", { class: "link-tools" }, stop)] : [];
  const other = rest.length ? choice(rest, { value: rest[0][0], key: "instead-other", label: "Step to do instead" }) : null;
  const add = () => editor.edit({ op: "add-alternative", step: id, other: other.value });
  const form = other && el("div", { class: "form-row" }, other, button("Add", add, { sign: "plus", kind: "small", key: "add-alternative", "aria-label": "Add an alternative" }));
  return el("div", { class: "links" }, el("h3", null, "Done instead of"), shown, form);
}

function splitting(editor, id) {
  const guess = editor.text(id).split(/(?<=[.;!?])\s+|,?\s+(?:and then|then|and)\s+/).filter(Boolean);
  const lines = el("textarea", { class: "field", rows: 3, "data-key": "split-lines", "aria-label": "One part in each line" });
  lines.value = guess.map((part) => part.trim()).join("\n");
  const split = async () => {
    const texts = lines.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (await editor.edit({ op: "split", step: id, texts })) editor.opened = null;
  };
  return el("div", { class: "more-body" }, el("p", { class: "dim small" }, "One part in each line; each waits for the one before it."), lines, button("Split", split, { key: "split-go" }));
}

function merging(editor, id) {
  const rest = others(editor, id);
  if (!rest.length) return el("p", { class: "dim small" }, "There is no other step.");
  const other = choice(rest, { value: rest[0][0], key: "merge-other", label: "Step to merge with" });
  const merge = async () => {
    if (await editor.edit({ op: "merge", steps: [id, other.value] })) editor.opened = null;
  };
  return el("div", { class: "more-body" }, el("p", { class: "dim small" }, "All links of both stay."), other, button("Merge", merge, { key: "merge-go" }));
}

function ofEdge(editor, before, after) {
  const line = (id, words) => el("li", null, nameOf(editor, id, 400), el("span", { class: "dim small" }, words));
  return [
    head(`Link ${editor.number(before)} → ${editor.number(after)}`),
    el("ul", { class: "edge-ends" }, line(before, "is finished before"), line(after, "begins")),
    el("div", { class: "links" }, el("h3", null, "Why"), why(editor, before, after)),
    el("p", { class: "buttons" }, ...tools(editor, before, after).children),
  ];
}
