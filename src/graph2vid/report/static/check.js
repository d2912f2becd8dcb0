// Where the video does not follow the procedure.

import { chip, el } from "./dom.js";
import { formatSpan, percent } from "./time.js";

export function makeCheck(state) {
  const { check, steps } = state.model;
  if (!check.length) return el("p", { class: "dim" }, "It does: no step is left out, done too late or done again.");
  const named = (step) => el("strong", null, steps[step].text.replace(/[.\s]+$/, ""));
  const said = ({ kind, after, start, end }) => {
    if (kind === "skipped") return [" is left out"];
    if (kind === "repeated") return [` is done again, ${formatSpan(start, end)}`];
    return [` is done too late, ${formatSpan(start, end)}: `, named(after), " had to wait for it"];
  };
  const rows = check.map((one) => {
    const words = el("span", { class: "finding-text" }, named(one.step), said(one));
    const sure = el("span", { class: "figure dim" }, `${percent(one.certainty)} sure`);
    const go = () => state.choose(one.step, one.start ?? undefined);
    return el("li", null, el("button", { type: "button", class: "finding", "data-step": one.step, onclick: go }, chip(steps[one.step]), words, sure));
  });
  return el("ul", { class: "findings" }, rows);
}
