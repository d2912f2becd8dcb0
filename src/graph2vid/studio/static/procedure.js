// The procedure in words, and who finds its order.

import { el } from "/view/dom.js";
import * as api from "./api.js";
import { button, fileButton, panel, plural, toast, trying } from "./parts.js";

const PARSERS = {
  auto: ["Automatic", "weighs the words, the learned parser and the written order, pair by pair"],
  rules: ["Rules", "reads the sentences: what is used later waits for what makes it"],
  learned: ["Learned", "a model trained on annotated recipes"],
  linear: ["As listed", "each step waits for the one before it"],
  bag: ["Any order", "no step waits for another"],
};
const FLOWS = [".flow", ".dot", ".gv"];

export function mountProcedure(main, context) {
  const { project, about } = context;
  let { procedure: saved, procedure_revision: revision } = project;
  const words = el("textarea", { class: "field procedure-text", id: "procedure", rows: 16, spellcheck: "true", placeholder: "1. Boil the water.\n2. Chop the onion.\n3. …" });
  words.value = saved;
  const known = [...Object.keys(PARSERS).filter((name) => about.parsers.includes(name)), ...about.parsers.filter((name) => !(name in PARSERS))];
  const parsers = known.map((name) => {
    const [title, hint] = PARSERS[name] ?? [name, "from another package"];
    const radio = el("input", { type: "radio", name: "parser", value: name, checked: name === (known.includes(project.parser) ? project.parser : "auto") });
    return el("label", { class: "option" }, radio, el("span", null, el("strong", null, title), el("span", { class: "dim small" }, hint)));
  });
  const count = el("p", { class: "dim small", role: "status" });

  const counted = () => {
    const lines = words.value.split("\n").filter((line) => line.trim()).length;
    count.textContent = lines ? `${plural(lines, "line")}${words.value === saved ? "" : " · not saved yet"}` : "A list, plain text, Markdown, a recipe’s web page or its JSON-LD.";
  };
  async function save() {
    if (words.value === saved) return true;
    const state = await api.put(context.path(`/procedure?revision=${revision}`), new Blob([words.value]));
    saved = words.value;
    revision = state.procedure_revision;
    context.take(state);
    counted();
    return true;
  }
  const find = () =>
    trying(async () => {
      if (!words.value.trim()) {
        toast("Write, paste or open a procedure first.", "warn");
        words.focus();
        return;
      }
      await save();
      await context.start("/parse", { parser: main.querySelector("[name=parser]:checked").value });
    });
  const take = (file) =>
    trying(async () => {
      const isFlow = FLOWS.some((suffix) => file.name.toLowerCase().endsWith(suffix)) || (file.name.toLowerCase().endsWith(".json") && (await file.slice(0, 400).text()).includes("graph2vid-flow"));
      if (isFlow) {
        context.take(await api.put(context.path(`/flow?name=${encodeURIComponent(file.name)}`), file));
        context.go("graph");
        return;
      }
      const state = await api.put(context.path(`/procedure?name=${encodeURIComponent(file.name)}&revision=${revision}`), file);
      saved = words.value = state.procedure;
      revision = state.procedure_revision;
      context.take(state);
      counted();
    });

  const go = button("Find the order", find, { kind: "primary", sign: "play", key: "find" });
  const update = () => {
    go.disabled = ["waiting", "running"].includes(project.job?.state);
    go.querySelector("span").textContent = go.disabled ? "Running …" : "Find the order";
  };
  update();

  words.addEventListener("input", counted);
  words.addEventListener("change", () => trying(save));
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find();
  });
  words.addEventListener("dragover", (event) => event.preventDefault());
  words.addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    take(file);
  });
  counted();
  main.replaceChildren(
    el("h1", { class: "visually-hidden" }, "Procedure"),
    el(
      "div",
      { class: "split" },
      panel("The procedure in words", { tools: fileButton("Open a file", ".txt,.md,.html,.htm,.json,.jsonld,.flow,.dot,.gv", take) }, el("label", { class: "visually-hidden", for: "procedure" }, "The procedure in words"), words, count),
      panel(
        "Who finds the order?",
        {},
        el("fieldset", { class: "options" }, el("legend", { class: "visually-hidden" }, "Parser"), parsers),
        el("p", { class: "buttons" }, go),
        el("p", { class: "dim small" }, project.flow ? "The graph found takes the place of the present one; undo brings that back." : "You can change every link afterwards."),
      ),
    ),
  );
  return { update, destroy: () => words.value === saved || trying(save) };
}
