// The same in figures: for those who copy, print, or do not see.

import { absence, chip, el, ordinal, targetOf } from "./dom.js";
import { formatMargin, formatTime, percent } from "./time.js";

export function makeTable(state) {
  const { steps, segments, not_shown: absent } = state.model;
  const hasMargins = segments.some(({ margin }) => margin !== null);
  const names = ["Order", "From", "To", ...(hasMargins ? ["Sure", "Margin"] : ["Length", "Sure"])];
  const kind = (at) => (names[at] === "Length" ? "figure length" : "figure");
  const titles = names.map((title, at) => el("th", { scope: "col", class: kind(at) }, title));
  const head = [el("th", { scope: "col" }, "Step"), ...titles];
  const rows = segments.map(({ step, start, end, confidence, margin, uncalibrated, why }) => {
    const sure = confidence === null ? (uncalibrated ? "uncalibrated" : "–") : percent(confidence);
    const figures = {
      Order: ordinal(steps[step].place),
      From: formatTime(start),
      To: formatTime(end),
      Length: formatTime(end - start),
      Sure: why ? `${sure}, doubtful` : sure,
      Margin: margin === null ? "–" : formatMargin(margin),
    };
    const cells = names.map((name, at) => el("td", { class: kind(at) }, figures[name]));
    return el("tr", { "data-step": step, title: why || null }, nameCell(steps[step]), cells);
  });
  for (const step of absent) {
    const none = el("td", { class: "figure", colspan: names.length }, absence(steps[step]));
    rows.push(el("tr", { class: "absent", "data-step": step }, nameCell(steps[step]), none));
  }
  const body = el("tbody", null, rows);
  body.addEventListener("click", (event) => {
    const row = targetOf(event).closest("tr");
    const segment = segments[rows.indexOf(row)];
    if (segment) state.choose(segment.step, segment.start);
  });
  const box = { class: "table-scroll", role: "region", tabindex: 0, "aria-label": "Times of all steps" };
  return el("div", box, el("table", null, el("thead", null, el("tr", null, head)), body));
}

function nameCell(step) {
  return el("th", { scope: "row" }, el("span", { class: "step-cell" }, chip(step), el("span", null, step.text)));
}
