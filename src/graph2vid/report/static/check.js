// Where the video does not follow the procedure, and what is not certain.

import { chip, el } from "./dom.js";
import { formatSpan, percent } from "./time.js";

export function makeCheck(state) {
  const { deviations, unsure, verdict } = state.model.check;
  const lines = [el("p", { class: "verdict dim" }, `${verdict[0].toUpperCase()}${verdict.slice(1)}.`), makeList(state, deviations)];
  if (unsure.length) lines.push(el("h3", { class: "dim small" }, "Not certain"), makeList(state, unsure, "unsure"));
  return el("div", { class: "check" }, lines);
}

function makeList(state, some, kind = "") {
  if (!some.length) return null;
  const { steps } = state.model;
  const named = (step) => el("strong", null, steps[step].text.replace(/[.\s]+$/, ""));
  const said = ({ kind, step, after, start, end }) => {
    if (kind === "skipped" && state.segmentsOf(step).length) return [" is left out: it is not shown where the timeline has it, nor elsewhere"];
    if (kind === "skipped") return start === null ? [" is left out"] : [` is left out, unless it is at ${formatSpan(start, end)}`];
    if (kind === "repeated") return [` is done again, ${formatSpan(start, end)}`];
    return [` is done too late, ${formatSpan(start, end)}: ${steps[after].number}. `, named(after), " had to wait for it"];
  };
  const rows = some.map((one) => {
    const words = el("span", { class: "finding-text" }, named(one.step), said(one));
    const sure = el("span", { class: "figure dim" }, `${percent(one.certainty)} sure`);
    const go = () => state.choose(one.step, one.start ?? undefined);
    return el("li", null, el("button", { type: "button", class: "finding", "data-step": one.step, onclick: go }, chip(steps[one.step]), words, sure));
  });
  return el("ul", { class: `findings ${kind}` }, rows);
}
