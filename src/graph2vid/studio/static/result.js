// The result as in the report, and what a person knows better.

import { chip, el } from "/view/dom.js";
import { formatSpan, formatTime } from "/view/time.js";
import { mountResult as mountView } from "/view/view.js";
import * as api from "./api.js";
import { button, choice, keepingFocus, plural, shortened, toast, trying } from "./parts.js";

export function mountResult(main, context) {
  const { project, about } = context;
  const bar = el("div", { class: "result-bar" });
  const stage = el("div", { class: "result-view" });
  const side = el("div", { class: "correct-panel" });
  let result = null; // what the server gave
  let model = null; // the same, with borders where they were dragged to since
  let view = null;
  let chosen = null; // {segment} or {step}
  let shown = null; // when the result that is shown was made

  async function load() {
    if (!project.result) {
      main.replaceChildren(el("h1", { class: "visually-hidden" }, "Result"), el("div", { class: "panel empty" }, el("h2", null, "There is no result yet"), el("p", { class: "dim" }, "Choose a video and ground it."), el("p", { class: "buttons" }, button("Go to the video", () => context.go("video"), { kind: "primary" }))));
      return;
    }
    const before = model;
    shown = project.result.made;
    result = (await trying(() => api.get(context.path("/view")))) ?? result;
    if (!result) return;
    model = overlaid();
    main.replaceChildren(el("h1", { class: "visually-hidden" }, "Result"), bar, side, stage);
    const step = chosen ? placeOf(before.steps[chosen.segment?.step ?? chosen.step].id) : -1;
    const segment = model.segments.find((one) => one.step === step);
    chosen = segment ? { segment } : step >= 0 ? { step } : null;
    if (view) view.update(model);
    else view = mountView(stage, model, { editable: true, theme: false });
    draw();
  }

  const idOf = (step) => model.steps[step].id;
  const placeOf = (id) => model.steps.findIndex((step) => step.id === id);
  const nameOf = (step) => `${step.number}. ${shortened(step.text, 60)}`;
  const called = (id) => `“${shortened(model.steps[placeOf(id)].text, 40)}”`;

  function overlaid() {
    const held = new Map(project.corrections.filter((one) => one.kind === "exact").map((one) => [one.step, one]));
    const isFirst = (segment, index) => result.segments.findIndex((one) => one.step === segment.step) === index;
    const moved = result.segments.flatMap((segment, index) => {
      const exact = held.get(result.steps[segment.step].id);
      if (!exact) return segment;
      return isFirst(segment, index) ? { ...segment, start: exact.start, end: exact.end } : []; // it has one place
    });
    return { ...result, segments: moved.sort((a, b) => a.start - b.start) };
  }
  async function known(corrections) {
    context.take({ corrections });
    model = overlaid();
    view.update(model);
    await context.reload();
  }
  const correct = (correction, said) =>
    trying(async () => {
      await known(await api.post(context.path("/corrections"), correction));
      toast(said);
    });
  const takeBack = (number) => {
    const words = encodeURIComponent(project.corrections[number].words);
    return context.upToDate(async () => known(await api.remove(context.path(`/corrections/${number}?words=${words}`))));
  };
  const again = () => context.start("/ground");

  stage.addEventListener("segment-select", (event) => {
    chosen = { segment: event.detail.segment };
    draw();
  });
  stage.addEventListener("step-select", (event) => {
    const { step } = event.detail;
    const segment = model.segments.find((one) => one.step === step);
    if (step === null) chosen = null;
    else if (chosen?.segment?.step !== step) chosen = segment ? { segment } : { step };
    draw();
  });
  stage.addEventListener("segment-drag", async (event) => {
    const { index, start, end, done } = event.detail;
    if (!done) return;
    const segment = model.segments[index];
    chosen = { segment: { ...segment, start, end } };
    await correct({ kind: "exact", step: idOf(segment.step), start, end }, `${called(idOf(segment.step))} is held to ${formatSpan(start, end)}.`);
  });

  function drawBar() {
    const busy = ["waiting", "running"].includes(project.job?.state);
    const number = project.corrections.filter((one) => one.applies).length;
    const stale = project.result.current ? null : el("p", { class: "stale", role: "status" }, number ? "Your corrections are not in this result yet." : "The graph or the video has changed since.");
    const { job } = project;
    const failed = job?.state === "failed" && job.kind !== "parse" ? el("p", { class: "warning", role: "status" }, job.message) : null;
    const unlikely = model.facts.unlikely ? el("p", { class: "warning" }, "The transcript hardly goes with this procedure: is it the right one for this video?") : null;
    bar.replaceChildren(
      ...[
        el("p", { class: "result-facts" }, el("strong", null, model.count.words), el("span", { class: "dim" }, ` · ${formatTime(model.end - model.offset)} · ${plural(number, "correction")}`)),
        stale,
        failed,
        unlikely,
        el("span", { class: "spring" }),
        button("Check the order", () => context.start("/check"), { key: "check", disabled: busy, title: "Is a step left out, done out of order or repeated?" }),
        exporting(),
        button(busy ? "Running …" : "Ground again", again, { kind: project.result.current ? "" : "primary", sign: "play", key: "again", disabled: busy }),
      ].filter(Boolean),
    );
  }

  function exporting() {
    const save = (name, path) => trying(async () => {
      const notes = await api.download(context.path(path));
      toast([`${name} is saved.`, ...notes.map((note) => `Note: ${note}.`)].join(" "), notes.length ? "warn" : "good");
    });
    const entry = (name, suffix, path) => el("li", null, el("button", { type: "button", "data-key": `export-${name}`, onclick: () => save(name, path) }, el("strong", null, name), el("span", { class: "dim small" }, suffix)));
    const formats = Object.entries(about.formats).map(([name, suffix]) => entry(name, suffix, `/export/${name}`));
    const menu = el("details", { class: "menu" }, el("summary", { class: "button", "data-key": "export" }, "Export"), el("ul", { class: "panel menu-list" }, entry("report", ".html", "/report"), formats));
    menu.addEventListener("toggle", () => {
      const outside = (event) => {
        if (menu.contains(event.target)) return;
        menu.open = false;
        document.removeEventListener("pointerdown", outside);
      };
      if (menu.open) document.addEventListener("pointerdown", outside);
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.firstChild.focus();
    });
    return menu;
  }

  function drawSide() {
    const known = project.corrections.map((one, number) => {
      const place = one.step === null ? -1 : placeOf(one.step);
      const step = model.steps[place];
      const sign = chip(step ?? {});
      const name = step ? shortened(step.text.replace(/[.\s]+$/, ""), 34) : one.step === null ? "no step" : `step ${one.step}`;
      const note = one.applies ? null : el("span", { class: "warning small" }, "this step is no longer in the graph");
      const jump = one.start === null ? null : () => view.seek(one.start);
      return el("li", { class: "correction" }, sign, el(jump ? "button" : "span", { type: jump ? "button" : null, class: "link-name", "data-key": `see-${number}`, onclick: jump }, `${name}: ${one.words}`, note), button("", () => takeBack(number), { sign: "cross", kind: "round quiet", "aria-label": `Take back: ${name} ${one.words}`, key: `back-${number}` }));
    });
    const list = known.length ? el("ul", { class: "corrections" }, known) : el("p", { class: "dim small" }, "Nothing yet. Say of a segment or step what is right or wrong: the next grounding keeps to it.");
    side.classList.toggle("chosen", Boolean(chosen));
    side.replaceChildren(el("section", { class: "panel correct", "aria-label": "Correct" }, el("div", { class: "correct-body" }, el("div", { class: "correct-chosen" }, actions()), el("div", { class: "correct-known" }, el("h2", null, "What you know"), list))));
  }

  function actions() {
    if (!chosen) return el("div", null, el("h2", null, "Correct"), el("p", { class: "dim" }, "Choose a segment in the timeline, or a step in the graph; drag the borders of segments."));
    const segment = chosen.segment;
    const place = segment ? segment.step : chosen.step;
    const step = model.steps[place];
    const id = step.id;
    const title = el("h2", { class: "chosen-name" }, chip(step), el("span", null, step.text), segment ? el("span", { class: "dim" }, formatSpan(segment.start, segment.end)) : null, button("", () => view.select(null), { sign: "cross", kind: "round quiet", "aria-label": "Choose nothing", key: "nothing" }));
    const anywhere = [button("Shown at the playhead", () => atPlayhead(id), { sign: "pin", key: "at-playhead" }), button("Not shown at all", () => correct({ kind: "forbid", step: id, start: null, end: null }, `${called(id)} is said not to be shown.`), { key: "absent" })];
    if (!segment) return el("div", null, title, el("div", { class: "buttons" }, anywhere));
    const span = { start: segment.start, end: segment.end };
    const other = choice([["", "It shows another step …"], ...model.steps.filter((one) => one.id !== id).map((one) => [one.id, nameOf(one)])], { key: "other", label: "The step that it shows" });
    other.addEventListener("change", () => other.value && correct({ kind: "show", step: other.value, ...span }, `${formatSpan(span.start, span.end)} is given to ${called(other.value)}.`));
    return el(
      "div",
      null,
      title,
      el(
        "div",
        { class: "buttons" },
        button("Right: keep it", () => correct({ kind: "exact", step: id, ...span }, `${called(id)} is held to ${formatSpan(span.start, span.end)}.`), { sign: "pin", key: "keep" }),
        button("Wrong: not this step", () => correct({ kind: "forbid", step: id, ...span }, `${called(id)} is kept out of ${formatSpan(span.start, span.end)}.`), { sign: "cross", key: "wrong" }),
        button("No step here", () => correct({ kind: "background", step: null, ...span }, `${formatSpan(span.start, span.end)} shows no step.`), { key: "none" }),
        other,
        anywhere,
      ),
    );
  }

  function atPlayhead(id) {
    const clip = Math.floor((view.time - model.offset) / model.clip_seconds);
    const start = model.offset + Math.min(clip, Math.round((model.end - model.offset) / model.clip_seconds) - 1) * model.clip_seconds;
    correct({ kind: "show", step: id, start, end: start + model.clip_seconds }, `${called(id)} is shown at ${formatTime(start)}.`);
  }

  function draw() {
    if (!model) return;
    const isOpen = bar.querySelector("details")?.open;
    keepingFocus(main, () => {
      drawBar();
      drawSide();
      if (isOpen) bar.querySelector("details").open = true;
    });
  }

  // What is held at the top must not lie on what is scrolled to.
  const watch = new ResizeObserver(() => document.documentElement.style.setProperty("--held", `${side.offsetHeight}px`));
  watch.observe(side);

  load();
  return {
    update: () => (project.result && project.result.made !== shown ? load() : draw()),
    destroy() {
      watch.disconnect();
      document.documentElement.style.removeProperty("--held");
      view?.destroy();
    },
  };
}
