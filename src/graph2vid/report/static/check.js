// Deviations of the video from the procedure, certain ones and others.

import { chip, el } from "./dom.js";
import { percent } from "./time.js";

export function makeCheck(state) {
  const { deviations, unsure, verdict } = state.model.check;
  const lines = [el("p", { class: "verdict dim" }, `${verdict[0].toUpperCase()}${verdict.slice(1)}.`), makeList(state, deviations)];
  if (unsure.length) lines.push(el("h3", { class: "dim small" }, "Not certain"), makeList(state, unsure, "unsure"));
  return el("div", { class: "check" }, lines);
}

function makeList(state, some, kind = "") {
  if (!some.length) return null;
  const { steps } = state.model;
  const rows = some.map((one) => {
    const name = el("strong", null, steps[one.step].text.replace(/[.\s]+$/, ""));
    const words = el("span", { class: "finding-text" }, name, ` ${one.words}`);
    const sure = el("span", { class: "figure dim" }, `${percent(one.certainty)} sure`);
    const go = () => state.choose(one.step, one.start ?? undefined);
    return el("li", null, el("button", { type: "button", class: "finding", "data-step": one.step, onclick: go }, chip(steps[one.step]), words, sure));
  });
  return el("ul", { class: `findings ${kind}` }, rows);
}
