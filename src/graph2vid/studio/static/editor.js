// The flow graph to be edited: boxes and arrows, an inspector, undo and redo.

import { el, rove } from "/view/dom.js";
import * as api from "./api.js";
import { makeCanvas } from "./canvas.js";
import { makeInspector } from "./inspector.js";
import { button, fileButton, forgetRefusals, keepingFocus, plural, toast } from "./parts.js";
import { makeGraphZoom } from "/view/graph.js";

export function mountEditor(main, context) {
  const { project } = context;
  const editor = {
    project,
    chosen: null, // {step: id} or {edge: [before, after]}
    linking: null, // the id of the step that a link is being drawn from
    found: "", // the words that are searched for
    graphZoom: "wide",
    // Edges that fight the evidence of the last result.
    fights: (before, after) => project.result?.conflicts.find((one) => one.before === before && one.after === after),
    // Removes the link, and grounds the video again.
    async relax(before, after) {
      if (await editor.edit({ op: "remove-edge", before, after })) context.start("/ground");
    },
    // What is highlighted goes: a link, or a step.
    remove() {
      const { chosen } = editor;
      if (chosen?.edge) editor.edit({ op: "remove-edge", before: chosen.edge[0], after: chosen.edge[1] });
      else if (chosen?.step) editor.edit({ op: "remove-step", step: chosen.step });
    },
    get steps() {
      return project.flow?.steps ?? [];
    },
    text: (id) => project.flow.steps.find((step) => step.id === id)?.text ?? "",
    number: (id) => project.flow.steps.findIndex((step) => step.id === id) + 1, // its place in the procedure
    choose(chosen) {
      editor.chosen = chosen;
      forgetRefusals();
      draw();
    },
    link(from) {
      editor.linking = from;
      draw();
      if (from) toast(`Now choose the step that must wait for step ${editor.number(from)}. Escape gives up.`);
    },
    edit: (edit) => inTurn(() => api.post(context.path("/edits"), { edit, revision: project.revision })),
    // Ends a link at a step: that one then waits for the first.
    async linkTo(to) {
      const from = editor.linking;
      editor.linking = null;
      if (from && from !== to) {
        const done = await editor.edit({ op: "add-edge", before: from, after: to });
        if (done) editor.chosen = { edge: [from, to] };
      }
      draw();
    },
  };

  const inTurn = (ask) =>
    context.inTurn(() =>
      context.upToDate(async () => {
        const state = await ask();
        forgetRefusals();
        if (state) context.take(state);
        return state;
      }),
    );
  const step = (way) => () =>
    inTurn(async () => {
      if (!project[`can_${way}`]) return null;
      const words = project[`${way}_words`];
      const state = await api.post(context.path(`/${way}?revision=${project.revision}`));
      if (words === "the correction") toast(`${way === "undo" ? "Undone" : "Done again"}: ${words} of the result.`);
      return state;
    });
  const undo = button("Undo", step("undo"), { sign: "undo", key: "undo", title: "Ctrl+Z" });
  const redo = button("Redo", step("redo"), { sign: "redo", key: "redo", title: "Ctrl+Shift+Z" });
  const add = button("Add a step", addStep, { sign: "plus", key: "add" });
  const orders = el("p", { class: "orders", role: "status" });
  const open = fileButton("Open", ".flow,.json,.dot,.gv,.txt", (file) => inTurn(() => api.put(context.path(`/flow?name=${encodeURIComponent(file.name)}`), file)), { key: "open", title: "Open a flow graph (.flow, .json, .dot)" });
  const save = el("a", { class: "button", href: `/api/${context.path("/flow")}`, download: `${project.name}.flow.json`, "data-key": "save" }, "Save a copy");
  const canvas = el("div", { class: "canvas", "data-canvas": "" });
  const search = el("input", { type: "search", class: "field search", placeholder: "Find a step", "aria-label": "Find a step", "data-key": "search" });
  search.addEventListener("input", () => {
    editor.found = search.value.trim().toLowerCase();
    draw();
    canvas.querySelector(".node.found")?.scrollIntoView({ block: "center", inline: "center" });
  });
  search.addEventListener("keydown", (event) => {
    const first = editor.steps.find((one) => matches(one));
    if (event.key === "Enter" && first) editor.choose({ step: first.id });
  });
  const matches = (one) => editor.found && `${editor.number(one.id)} ${one.text}`.toLowerCase().includes(editor.found);
  editor.matches = matches;
  const zoom = el("div", { class: "canvas-zoom" });
  const inspector = el("section", { class: "panel inspector", "aria-label": "What is chosen" });
  const next = button("Choose a video", () => context.go("video"), { kind: "primary", sign: "film", key: "next" });

  async function addStep() {
    const after = editor.chosen?.step ?? null;
    const before = new Set(editor.steps.map((one) => one.id));
    const state = await editor.edit({ op: "add-step", text: "New step", after });
    const made = state?.flow.steps.find((one) => !before.has(one.id));
    if (!made) return;
    editor.choose({ step: made.id });
    const words = inspector.querySelector("textarea");
    words.focus();
    words.select();
  }

  // Forgets what was chosen where an edit has removed it.
  function prune() {
    const ids = new Set(editor.steps.map((one) => one.id));
    const { chosen } = editor;
    if (chosen?.step && !ids.has(chosen.step)) editor.chosen = null;
    if (chosen?.edge && !project.flow?.edges.some(([a, b]) => a === chosen.edge[0] && b === chosen.edge[1])) editor.chosen = null;
  }

  function draw() {
    prune();
    keepingFocus(main, () => {
      undo.disabled = !project.can_undo;
      redo.disabled = !project.can_redo;
      next.hidden = save.hidden = search.hidden = !project.flow;
      undo.title = project.can_undo ? `Undo ${project.undo_words} (Ctrl+Z)` : "Ctrl+Z";
      redo.title = project.can_redo ? `Redo ${project.redo_words} (Ctrl+Shift+Z)` : "Ctrl+Shift+Z";
      const words = project.orders ? `${plural(editor.steps.length, "step")}, ${plural(project.flow.edges.length, "link")}: ${project.orders.words}` : "No graph yet";
      if (orders.textContent !== words) orders.textContent = words;
      const [left, top] = [canvas.scrollLeft, canvas.scrollTop];
      canvas.replaceChildren(project.flow ? makeCanvas(editor) : emptyNote());
      if (project.flow) {
        const drawing = canvas.querySelector("svg");
        const box = drawing.viewBox.baseVal;
        zoom.replaceChildren(makeGraphZoom(canvas, drawing, { width: box.width, height: box.height }, editor));
      }
      canvas.scrollTo(left, top);
      inspector.replaceChildren(...(project.flow ? makeInspector(editor) : []));
      inspector.hidden = !project.flow;
      const nodes = canvas.querySelector("svg");
      if (nodes) rove(nodes, ".node", (current, key, all) => neighbour(project, current, key, all));
      const chosen = editor.chosen?.step && canvas.querySelector(`.node[data-step="${CSS.escape(editor.chosen.step)}"]`);
      if (chosen) for (const one of /** @type {NodeListOf<SVGElement>} */ (canvas.querySelectorAll(".node"))) one.tabIndex = one === chosen ? 0 : -1;
    });
  }

  const emptyNote = () => el("div", { class: "empty" }, el("h2", null, "There is no flow graph yet"), el("p", { class: "dim" }, "Let a parser find it in the procedure, open one, or add steps by hand."), el("p", { class: "buttons" }, button("Go to the procedure", () => context.go("procedure"), { kind: "primary" })));

  const keys = (event) => {
    const typing = event.target.matches("input, textarea, select");
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Escape" && editor.linking) editor.link(null);
    if (typing || event.defaultPrevented) return;
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      editor.remove();
    }
    if (event.key === "Escape" && editor.chosen) editor.choose(null);
    if (control && event.key.toLowerCase() === "z") {
      event.preventDefault();
      (event.shiftKey ? redo : undo).click();
    } else if (control && event.key.toLowerCase() === "y") {
      event.preventDefault();
      redo.click();
    }
  };
  document.addEventListener("keydown", keys);

  main.replaceChildren(
    el("h1", { class: "visually-hidden" }, "Flow graph"),
    el("div", { class: "editor-bar" }, undo, redo, add, open, save, search, orders, el("span", { class: "spring" }), next),
    el("div", { class: "editor-body" }, el("section", { class: "panel canvas-panel", "aria-label": "Graph" }, zoom, canvas), inspector),
  );
  draw();
  return {
    update: draw,
    destroy: () => document.removeEventListener("keydown", keys),
  };
}

// Where an arrow key leads: along the links up and down, to the next steps left and right.
function neighbour({ flow, picture }, current, key, all) {
  const place = flow.steps.findIndex((step) => step.id === current.dataset.step);
  const at = (index) => (index === undefined ? null : all.find((one) => one.dataset.step === flow.steps[index].id));
  if (key === "ArrowDown") return at(picture.edges.find((edge) => edge.from === place)?.to);
  if (key === "ArrowUp") return at(picture.edges.find((edge) => edge.to === place)?.from);
  const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
  return by ? all[all.indexOf(current) + by] : null;
}
