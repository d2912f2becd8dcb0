// The result as in the report, all on one screen, and what a person knows better.

import { chip, el } from "/view/dom.js";
import { formatSpan, formatTime, onClips } from "/view/time.js";
import { mountResult as mountView } from "/view/view.js";
import * as api from "./api.js";
import { makeChecking } from "./checking.js";
import { exportMenu, imported } from "./exporting.js";
import { followFilm } from "./film.js";
import { button, choice, fileButton, forgetRefusals, keepingFocus, plural, shortened, toast, trying } from "./parts.js";

const CHANGED = { graph: "the graph has changed", video: "another video is chosen", captions: "other captions are chosen", settings: "settings have changed", corrections: "your corrections are not in it yet", learned: "more was learnt since" };

export function mountResult(main, context, { query, view: asked }) {
  const { project, about, inTurn } = context;
  const checking = makeChecking(context);
  const bar = el("div", { class: "result-bar" });
  const stage = el("div", { class: "result-view" });
  const side = el("div", { class: "correct" });
  let result = null; // what the server gave
  let model = null; // the same, with borders where they were dragged to since
  let view = null;
  let chosen = null; // {segment} or {step}
  let begun = null; // where a span of a step that is not shown was begun: {step, start}
  let shown = null; // when the result that is shown was made
  let laidOver = ""; // the corrections that are laid over it
  let film = null; // small pictures and the waveform
  let stopFilm = () => {};

  async function load() {
    if (!project.result) {
      main.replaceChildren(el("h1", { class: "visually-hidden" }, "Result"), el("div", { class: "panel empty" }, el("h2", null, "There is no result yet"), el("p", { class: "dim" }, "Choose a video and ground it."), el("p", { class: "buttons" }, button("Go to the video", () => context.go("video"), { kind: "primary" }))));
      return;
    }
    const before = model;
    shown = project.result.made;
    const found = asked ?? api.get(context.path("/view"));
    asked = null; // the next one is another
    result = (await trying(() => found)) ?? result;
    if (!result) return;
    model = overlaid();
    main.replaceChildren(el("h1", { class: "visually-hidden" }, "Result"), bar, stage);
    const step = chosen ? placeOf(before.steps[chosen.segment?.step ?? chosen.step].id) : -1;
    const segment = model.segments.find((one) => one.step === step);
    chosen = segment ? { segment } : step >= 0 ? { step } : null;
    if (view) view.update(model);
    else {
      view = mountView(stage, model, { editable: true, theme: false, layout: "workspace", side: ["Correct", side], keys, film: () => film });
      arrive();
      if (model.video) stopFilm = followFilm(context, (found) => {
        film = found;
        view.state.emit("film");
      });
    }
    view.state.say = (words) => toast(words);
    draw();
  }

  // Who comes by a link is led to what it is about.
  function arrive() {
    const step = query.has("step") ? placeOf(query.get("step")) : -1;
    if (step >= 0) view.state.choose(step, query.has("t") ? Number(query.get("t")) : undefined);
    else if (query.has("t")) view.seek(Number(query.get("t")) || 0);
  }
  const idOf = (step) => model.steps[step].id;
  const placeOf = (id) => model.steps.findIndex((step) => step.id === id);
  const nameOf = (step) => `${step.number ?? "–"}. ${shortened(step.text, 60)}`;
  const called = (id) => `“${shortened(model.steps[placeOf(id)].text, 40)}”`;

  // Corrections show at once, before the next grounding.
  function overlaid() {
    laidOver = JSON.stringify(project.corrections);
    const held = new Map(project.corrections.filter((one) => one.kind === "exact").map((one) => [one.step, one]));
    const isFirst = (segment, index) => result.segments.findIndex((one) => one.step === segment.step) === index;
    const moved = result.segments.flatMap((segment, index) => {
      const exact = held.get(result.steps[segment.step].id);
      if (!exact) return segment;
      return isFirst(segment, index) ? { ...segment, start: exact.start, end: exact.end, why: "", kept: true } : []; // it has one place
    });
    const there = new Set(moved.map((one) => one.step));
    for (const [id, { start, end }] of held) {
      const step = result.steps.findIndex((one) => one.id === id);
      if (step >= 0 && !there.has(step)) moved.push({ step, start, end, confidence: null, margin: null, uncalibrated: false, why: "", kept: true });
    }
    return { ...result, segments: moved.sort((a, b) => a.start - b.start) };
  }
  async function known(corrections) {
    context.take({ corrections });
    await context.reload();
  }
  function show() {
    if (!view) return;
    model = overlaid();
    const place = chosen?.segment?.step ?? chosen?.step;
    const segment = model.segments.find((one) => one.step === place);
    if (chosen && place !== undefined) chosen = segment ? { segment } : { step: place };
    view.update(model);
    draw();
  }
  // One that contradicts another is refused by the server, which names that one: it can be taken back right there.
  const correct = (correction, said) => inTurn(() => trying(async () => {
      try {
        await known(await api.post(context.path("/corrections"), correction));
        toast(said, "good", { act: undo, words: "Undo" });
      } catch (error) {
        show(); // borders go back to where they were
        if (error.other === null || error.other === undefined) throw error;
        const { other } = error;
        toast(sentence(error.message), "bad", { act: async () => (await takeBack(other)) && correct(correction, said), words: "Take that back and do this", isRefusal: true });
      }
    }));
  const importing = (file) => inTurn(() => context.upToDate(async () => toast(...(await imported(context, file)))));
  const takeBack = (number) => {
    const words = encodeURIComponent(project.corrections[number].words);
    return inTurn(() => context.upToDate(async () => {
      await known(await api.remove(context.path(`/corrections/${number}?words=${words}`)));
      return true;
    }));
  };
  const step = (way) => () =>
    inTurn(() => context.upToDate(async () => {
      const words = project[`${way}_words`];
      if (!project[`can_${way}`]) return;
      const elsewhere = way === "undo" ? project.videos.find((one) => one.id === project.undo_video && one.id !== project.shown) : null;
      await api.post(context.path(`/${way}?revision=${project.revision}`));
      await context.reload();
      toast(`${way === "undo" ? "Undone" : "Done again"}: ${words}${elsewhere ? ` in ${elsewhere.title}` : ""}.`);
    }));
  const [undo, redo] = [step("undo"), step("redo")];
  const again = () => inTurn(() => context.start("/ground"));
  const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

  /** @type {(name: string, told: (event: CustomEvent) => void) => void} */
  const on = (name, told) => stage.addEventListener(name, told);
  on("segment-select", (event) => {
    chosen = { segment: event.detail.segment };
    draw();
  });
  on("step-select", (event) => {
    const { step: place } = event.detail;
    forgetRefusals();
    const segment = model.segments.find((one) => one.step === place);
    if (place === null) chosen = null;
    else if (chosen?.segment?.step !== place) chosen = segment ? { segment } : { step: place };
    // Who goes through a list beside it stays there; on a phone what can be done lies over all tabs.
    const isInList = document.activeElement?.closest(".side") && window.innerWidth > 860;
    if (place !== null && !isInList) view?.showTab("side");
    draw();
  });
  on("segment-drag", async (event) => {
    const { index, start, end, done } = event.detail;
    if (!done) return;
    const segment = model.segments[index];
    chosen = { segment };
    await exactly(idOf(segment.step), start, end);
  });
  on("span-draw", (event) => {
    const { step: place, start, end } = event.detail;
    chosen = { step: place };
    exactly(idOf(place), start, end);
  });
  on("relax", (event) => relax(event.detail));

  const exactly = (id, start, end) => correct({ kind: "exact", step: id, start, end }, `${called(id)} is held to ${formatSpan(start, end)}.`);
  const relax = ({ before, after }) =>
    inTurn(() => context.upToDate(async () => {
      context.take(await api.post(context.path("/edits"), { edit: { op: "remove-edge", before, after }, revision: project.revision }));
      again();
    }));
  const act = {
    keep: () => chosen?.segment && exactly(idOf(chosen.segment.step), chosen.segment.start, chosen.segment.end),
    wrong() {
      if (!chosen?.segment) return;
      const { step: place, start, end } = chosen.segment;
      correct({ kind: "forbid", step: idOf(place), start, end }, `${called(idOf(place))} is kept out of ${formatSpan(start, end)}.`);
    },
    none() {
      if (!chosen?.segment) return;
      const { start, end } = chosen.segment;
      correct({ kind: "background", step: null, start, end }, `${formatSpan(start, end)} shows no step.`);
    },
    // Of a step that is not shown, the begin is remembered until its end is set.
    begin() {
      if (chosen?.segment) view.state.nudge("start", { to: view.time });
      else if (chosen) {
        begun = { step: chosen.step, start: onClips(view.time, model.offset, model.clip_seconds) };
        toast(`${called(idOf(chosen.step))} begins at ${formatTime(begun.start)}: go to its end and press O.`);
      } else toast("Choose a step or a segment first.");
    },
    end() {
      const at = onClips(view.time, model.offset, model.clip_seconds);
      if (chosen?.segment) view.state.nudge("end", { to: view.time });
      else if (chosen && begun?.step === chosen.step && at > begun.start) exactly(idOf(chosen.step), begun.start, at);
      else toast(chosen ? "Set where it begins first: press I there." : "Choose a step or a segment first.");
    },
  };
  function keys(state) {
    return [
      ["Correct", ["y", "Y"], "the chosen segment is right: keep it", act.keep],
      ["Correct", ["Delete", "Backspace"], "it is wrong: not this step here", act.wrong],
      ["Correct", ["b", "B"], "no step is shown there", act.none],
      ["Correct", ["i", "I"], "it begins at the playhead", act.begin],
      ["Correct", ["o", "O"], "it ends at the playhead", act.end],
      ["Correct", ["Alt+ArrowLeft"], "it ends a clip earlier", () => state.nudge("end", { by: -1 })],
      ["Correct", ["Alt+ArrowRight"], "it ends a clip later", () => state.nudge("end", { by: 1 })],
      ["Correct", ["Alt+Shift+ArrowLeft"], "it begins a clip earlier", () => state.nudge("start", { by: -1 })],
      ["Correct", ["Alt+Shift+ArrowRight"], "it begins a clip later", () => state.nudge("start", { by: 1 })],
      ...(project.videos.length > 1 ? checking.keys : []),
      ["Project", ["Ctrl+z"], "undo, corrections and links alike", undo],
      ["Project", ["Ctrl+Shift+z", "Ctrl+y"], "redo", redo],
      ["Project", ["Ctrl+Enter"], "ground again", again],
    ];
  }

  function drawBar() {
    const busy = ["waiting", "running"].includes(project.job?.state);
    const number = project.corrections.filter((one) => one.applies).length;
    const { job } = project;
    const why = project.result.outdated.map((name) => CHANGED[name]).join(", ");
    const stale = project.result.current ? null : el("p", { class: "stale", role: "status", title: `Since this result was made: ${why}.` }, el("strong", null, "Outdated"), el("span", null, `: ${why}`));
    const failed = job?.state === "failed" && job.kind !== "parse" && context.failedAt === project.revision ? el("p", { class: "warning", role: "status" }, job.message) : null;
    const unlikely = model.facts.unlikely ? el("p", { class: "warning", title: "The transcript hardly goes with this procedure: is it the right one for this video?" }, "The transcript hardly goes with this procedure: is it the right one for this video?") : null;
    const undoing = (way, sign, go) => button("", go, { sign, kind: "round", key: way, disabled: !project[`can_${way}`], "aria-label": way === "undo" ? "Undo" : "Redo", title: project[`can_${way}`] ? `${way === "undo" ? "Undo" : "Redo"} ${project[`${way}_words`]} (Ctrl+${way === "undo" ? "" : "Shift+"}Z)` : null });
    bar.replaceChildren(
      ...[
        ...checking.parts(),
        el("p", { class: "result-facts" }, el("strong", null, model.count.words), el("span", { class: "dim" }, ` · ${formatTime(model.end - model.offset, 0)}${number ? ` · ${plural(number, "correction")}` : ""}`)),
        stale,
        failed,
        unlikely,
        el("span", { class: "spring" }),
        undoing("undo", "undo", undo),
        undoing("redo", "redo", redo),
        button("Check the order", () => context.start("/check"), { key: "check", disabled: busy, title: "Is a step left out, done out of order or repeated?" }),
        exporting(),
        button(busy ? "Running …" : "Ground again", again, { kind: project.result.current ? "" : "primary", sign: "play", key: "again", disabled: busy }),
      ].filter(Boolean),
    );
  }

  function exporting() {
    const name = model.video?.name;
    const reports = [["report", name ? `Report, to lie beside ${shortened(name, 24)}` : "Report", ".html", "/report"], ...(name ? [["report-video", "Report with the video inside", ".html", "/report?embed=true"]] : [])];
    const clips = name ? [["clips", "A clip and a still of each step", ".zip", () => context.start("/clips")]] : [];
    return exportMenu(context, { title: "Export", entries: [...reports, ...clips, ...Object.entries(about.titles).map(([key, title]) => [key, title, about.formats[key], `/export/${key}`])] });
  }

  function drawSide() {
    const listed = project.corrections.map((one, number) => {
      const place = one.step === null ? -1 : placeOf(one.step);
      const found = model.steps[place];
      const name = found ? shortened(found.text.replace(/[.\s]+$/, ""), 34) : one.step === null ? "no step" : `step ${one.step}`;
      const note = one.applies ? null : el("span", { class: "warning small" }, " this step is no longer in the graph");
      const jump = one.start === null ? null : () => view.seek(one.start);
      return el("li", { class: "correction" }, chip(found ?? {}), el(jump ? "button" : "span", { type: jump ? "button" : null, class: "link-name", "data-key": `see-${number}`, onclick: jump }, `${name}: ${one.words}`, note), button("", () => takeBack(number), { sign: "cross", kind: "round quiet", "aria-label": `Take back: ${name} ${one.words}`, key: `back-${number}` }));
    });
    const list = listed.length ? el("ul", { class: "corrections" }, listed) : el("p", { class: "dim small" }, "Nothing yet. Say of a segment or step what is right or wrong: the next grounding keeps to it.");
    side.classList.toggle("chosen", Boolean(chosen));
    side.replaceChildren(el("div", { class: "correct-chosen" }, actions()), el("div", { class: "correct-known" }, el("div", { class: "known-head" }, el("h3", null, "What you know"), fileButton("Import annotations", ".eaf,.csv,.json", importing, { kind: "small", key: "import", title: "Annotations of this video by ELAN, Label Studio or as a table (step, start, end) become corrections" })), list));
  }

  function actions() {
    if (!chosen) return el("div", null, el("p", { class: "dim" }, "Choose a segment in the timeline, or a step in the graph. Drag its borders or all of it; draw in the lane of a step that is missing. ", el("kbd", null, "N"), " goes to the next doubtful segment, ", el("kbd", null, "?"), " shows all keys."));
    const { segment } = chosen;
    const place = segment ? segment.step : chosen.step;
    const found = model.steps[place];
    const { id } = found;
    const title = el("h2", { class: "chosen-name" }, chip(found), el("span", null, found.text), segment ? el("span", { class: "dim" }, formatSpan(segment.start, segment.end)) : null, button("", () => view.select(null), { sign: "cross", kind: "round quiet", "aria-label": "Choose nothing", key: "nothing" }));
    const doubt = segment?.why ? el("p", { class: "warning small" }, `Doubtful: ${segment.why}.`) : null;
    const say = (words, go, key, pressed) => button(words, go, { key, pressed, kind: "say" });
    const group = (name, ...parts) => el("div", { class: "say-group", role: "group", "aria-label": name }, el("span", { class: "say-name dim", "aria-hidden": "true" }, name), el("div", { class: "buttons" }, parts));
    const here = group("At the playhead", say("Begins here", act.begin, "begin", "I"), say("Ends here", act.end, "end", "O"), say("Is shown here", () => atPlayhead(id), "at-playhead"));
    const absent = group("In this video", say("Not shown at all", () => correct({ kind: "forbid", step: id, start: null, end: null }, `${called(id)} is said not to be shown.`), "absent"));
    if (!segment) return el("div", null, title, here, absent);
    const span = { start: segment.start, end: segment.end };
    const other = choice([["", "It shows another step …"], ...model.steps.filter((one) => one.id !== id).map((one) => [one.id, nameOf(one)])], { key: "other", label: "The step that it shows" });
    other.addEventListener("change", () => other.value && correct({ kind: "show", step: other.value, ...span }, `${formatSpan(span.start, span.end)} is given to ${called(other.value)}.`));
    return el(
      "div",
      null,
      title,
      doubt,
      group("This segment", say("Right: keep it", act.keep, "keep", "Y"), say("Wrong: not this step", act.wrong, "wrong", "Del"), say("No step here", act.none, "none", "B"), other),
      here,
      absent,
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

  load();
  return {
    update() {
      if (project.result && project.result.made !== shown) return load();
      return JSON.stringify(project.corrections) === laidOver ? draw() : show();
    },
    destroy() {
      forgetRefusals();
      stopFilm();
      view?.destroy();
    },
  };
}
