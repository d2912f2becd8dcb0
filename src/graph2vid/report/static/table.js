// The same in figures: for those who copy, print, or do not see.

import { chip, el } from "./dom.js";
import { formatTime, percent } from "./time.js";

export function makeTable(state) {
  const { steps, segments, not_shown: absent } = state.model;
  const titles = ["From", "To", "Length", "Sure"].map((title) => el("th", { scope: "col", class: "figure" }, title));
  const head = [el("th", { scope: "col" }, "Step"), ...titles];
  const rows = segments.map(({ step, start, end, confidence }) => {
    const times = [start, end, end - start].map((seconds) => formatTime(seconds));
    const figures = [...times, confidence === null ? "–" : percent(confidence)];
    const cells = figures.map((text) => el("td", { class: "figure" }, text));
    return el("tr", { "data-step": step }, nameCell(steps[step]), cells);
  });
  for (const step of absent) {
    const none = el("td", { class: "figure", colspan: 4 }, "not shown");
    rows.push(el("tr", { class: "absent", "data-step": step }, nameCell(steps[step]), none));
  }
  const body = el("tbody", null, rows);
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    const segment = segments[rows.indexOf(row)];
    if (segment) state.choose(segment.step, segment.start);
  });
  const box = { class: "table-scroll", role: "region", tabindex: 0, "aria-label": "Times of all steps" };
  return el("div", box, el("table", null, el("thead", null, el("tr", null, head)), body));
}

function nameCell(step) {
  return el("th", { scope: "row" }, el("span", { class: "step-cell" }, chip(step), el("span", null, step.text)));
}
