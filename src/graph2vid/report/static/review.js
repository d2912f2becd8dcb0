// What to look at: links that fight the evidence, what is doubtful, what is not shown, and what the check of the order found.

import { makeCheck } from "./check.js";
import { absence, chip, el } from "./dom.js";
import { formatSpan } from "./time.js";

const tidy = (text) => text.replace(/[.\s]+$/, "");
const doubtfulIn = ({ segments }) => [...segments.keys()].filter((index) => segments[index].why);

// How much there is to look at.
export function reviewCount(model) {
  const found = model.check ? model.check.deviations.length + model.check.unsure.length : 0;
  return model.conflicts.length + doubtfulIn(model).length + found;
}

// Whether there is anything to say of it.
export const hasReview = (model) => Boolean(reviewCount(model) || model.check || model.not_shown.length);

// What a link that fights the evidence is called, in the numbers of its steps.
export function conflictWords({ steps }, { before, after, relieved }) {
  const fewer = relieved ? `; without it ${relieved === 1 ? "one step" : `${relieved} steps`} fewer would be doubtful` : "";
  return `“${tidy(steps[before].text)}” before “${tidy(steps[after].text)}” fights what the video shows${fewer}.`;
}

export function makeReview(state) {
  const { model } = state;
  const { steps, segments, conflicts, not_shown: absent } = model;
  const doubtful = doubtfulIn(model);
  const finding = (step, words, act, figure = null) => el("li", null, el("button", { type: "button", class: "finding", "data-step": step, onclick: act }, chip(steps[step]), el("span", { class: "finding-text" }, words), figure && el("span", { class: "figure dim" }, figure)));
  const section = (title, hint, ...content) => el("section", { class: "review-part" }, el("h3", null, title), hint && el("p", { class: "dim small" }, hint), content);
  const parts = [];
  if (conflicts.length) {
    const items = conflicts.map((one) =>
      el(
        "li",
        { class: "conflict" },
        el("p", null, el("strong", null, `${steps[one.before].number} → ${steps[one.after].number} `), conflictWords(model, one)),
        state.options.editable ? el("button", { type: "button", class: "button small relax", onclick: () => state.tell("relax", { before: steps[one.before].id, after: steps[one.after].id }) }, "Relax: remove this link and ground again") : null,
      ),
    );
    parts.push(section("Links that fight the evidence", null, el("ul", { class: "conflicts" }, items)));
  }
  if (doubtful.length) {
    const rows = doubtful.map((index) => finding(segments[index].step, [el("strong", null, tidy(steps[segments[index].step].text)), ` ${segments[index].why}`], () => state.pick(index), formatSpan(segments[index].start, segments[index].end)));
    parts.push(section(`Doubtful (${doubtful.length})`, "N and P go from one to the next.", el("ul", { class: "findings" }, rows)));
  }
  if (model.elsewhere.length) {
    const items = model.elsewhere.map((one) => {
      const against = one.against.length ? `, though ${one.against.slice(0, 3).map(([before, after]) => `${steps[before].number} is expected before ${steps[after].number}`).join(", ")}` : "";
      const words = [el("strong", null, tidy(steps[one.step].text)), ` may be here instead${against}.`];
      const take = state.options.editable ? el("button", { type: "button", class: "button small put", onclick: () => state.tell("span-draw", { step: one.step, start: one.start, end: one.end }) }, "Put it there") : null;
      const item = finding(one.step, words, () => state.seek(one.start), formatSpan(one.start, one.end));
      if (take) item.append(take);
      return item;
    });
    parts.push(section("Elsewhere", "Where else a doubtful or missing step may be, if the order is left open.", el("ul", { class: "findings" }, items)));
  }
  if (model.check) parts.push(section("Does the video follow the procedure?", null, makeCheck(state)));
  else if (absent.length) parts.push(section(`Not shown (${absent.length})`, null, el("ul", { class: "findings" }, absent.map((step) => finding(step, [el("strong", null, tidy(steps[step].text)), ` ${absence(steps[step])}`], () => state.choose(step))))));
  if (!parts.length) parts.push(el("p", { class: "dim" }, "Nothing is doubtful, and every step is shown."));
  return el("div", { class: "review" }, parts);
}
