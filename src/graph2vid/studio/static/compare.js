// Two videos of one procedure, step by step: what each shows, when, for how long, and in which order.

import { chip, el, ordinal } from "/view/dom.js";
import { formatSpan, formatTime } from "/view/time.js";
import * as api from "./api.js";
import { button, choice, panel, trying } from "./parts.js";

const idOf = (part) => (part === "first" ? "" : part);

// How much longer or shorter the second takes.
export function difference(first, second) {
  if (!first || !second) return "";
  const by = second.end - second.start - (first.end - first.start);
  if (Math.abs(by) < 0.05) return "as long";
  return `${formatTime(Math.abs(by))} ${by > 0 ? "longer" : "shorter"}`;
}

export function mountCompare(main, context, { other }) {
  const { project } = context;
  const ids = [project.shown, idOf(other)];
  const names = new Map(project.videos.map((one) => [one.id, one.title]));
  const players = [];

  async function load() {
    const models = await trying(() => Promise.all(ids.map((id) => api.get(context.path("/view", id)))));
    if (models) draw(models);
  }
  const goTo = (at, segment) => {
    if (segment && players[at]) players[at].currentTime = segment.start;
  };
  const play = (some) => some.forEach((one) => one.play()?.catch(() => {})); // what cannot be played says so itself
  // Those that are given stop if one of them plays, else they play.
  const toggle = (some) => (some.some((one) => !one.paused) ? some.forEach((one) => one.pause()) : play(some));
  const both = button("Play both", () => toggle(players.filter(Boolean)), { sign: "play", key: "play-both" });
  const sayBoth = () => (both.querySelector("span").textContent = players.some((one) => one && !one.paused) ? "Pause" : "Play both");

  function side(model, at) {
    const length = model.end - model.offset || 1;
    const clock = el("output", { class: "clock" }, formatTime(0));
    const needle = el("i", { class: "needle" });
    const follow = () => {
      sayBoth();
      clock.textContent = formatTime(players[at].currentTime);
      needle.style.setProperty("left", `${(100 * (players[at].currentTime - model.offset)) / length}%`);
      if (!players[at].paused) requestAnimationFrame(follow);
    };
    // Without controls of the browser's, which would lie over the frames that are compared.
    const video = model.video ? el("video", { class: "preview", preload: "metadata", src: model.video.url, "aria-label": names.get(ids[at]), title: "Click to play or pause", onclick: () => toggle([players[at]]), onplay: follow, onpause: follow, onseeked: follow }) : el("p", { class: "notice" }, "There is no video to play: captions alone were grounded.");
    players[at] = model.video ? video : null;
    const bar = el("div", { class: "mini tall", role: "img", "aria-label": `${names.get(ids[at])}: ${model.count.words}` }, model.segments.map((part) => el("span", { title: model.steps[part.step].text, style: { left: `${(100 * (part.start - model.offset)) / length}%`, width: `${(100 * (part.end - part.start)) / length}%`, "--colour": model.steps[part.step].colour } })), model.video && needle);
    bar.addEventListener("click", (event) => {
      const box = bar.getBoundingClientRect();
      goTo(at, { start: model.offset + ((event.clientX - box.left) / box.width) * length });
    });
    const pick = choice(project.videos.map((one) => [one.id || "first", one.title]), { value: ids[at] || "first", label: at ? "The second video" : "The first video", key: `side-${at}` });
    pick.addEventListener("change", () => {
      const pair = ids.map((id, place) => (place === at ? pick.value : id || "first"));
      location.hash = `#/${project.name}/compare/${pair.join("/")}`;
    });
    return panel(names.get(ids[at]) ?? "Video", { name: "compared", tools: el("span", { class: "form-row" }, pick, el("a", { class: "button small", href: context.link("result", ids[at]) }, "Open")) }, video, bar, el("p", { class: "compared-foot dim small" }, `${model.count.words} · ${formatTime(length, 0)}`, model.video && clock));
  }

  function draw(models) {
    const steps = models[0].steps.map((step, at) => {
      const twins = [at, models[1].steps.findIndex((one) => one.id === step.id)];
      const parts = models.map((model, side_) => model.segments.find((part) => part.step === twins[side_]) ?? null);
      const cells = parts.map((part, side_) => el("td", null, part ? el("button", { type: "button", class: "link-name", onclick: () => goTo(side_, part) }, `${formatSpan(part.start, part.end)}`, el("span", { class: "dim small" }, ` ${ordinal(models[side_].steps[twins[side_]].place)}`)) : el("span", { class: "dim" }, "not shown")));
      const playBoth = () => {
        parts.forEach((part, side_) => goTo(side_, part));
        play(players.filter((one, side_) => one && parts[side_]));
      };
      return el("tr", null, el("td", null, button("", playBoth, { sign: "play", kind: "round quiet", "aria-label": `Play step ${step.number ?? "–"} in both`, title: "Play it in both" })), el("th", { scope: "row" }, el("span", { class: "compare-step" }, chip(step), el("span", null, step.text))), cells, el("td", { class: "dim" }, difference(parts[0], parts[1])));
    });
    const order = (model) => model.order.map((step) => model.steps[step].id).join(" ");
    const same = order(models[0]) === order(models[1]) ? "Both show the steps in the same order." : "They show the steps in different orders.";
    const head = el("tr", null, ["", "Step", names.get(ids[0]), names.get(ids[1]), "The second takes"].map((text) => el("th", { scope: "col" }, text)));
    main.replaceChildren(
      el("div", { class: "page-head" }, el("a", { class: "button", href: context.link("video") }, "All videos"), el("h1", null, "Two videos, step by step"), el("span", { class: "spring" }), both),
      el("div", { class: "compare-sides" }, models.map(side)),
      panel("Steps", { tools: el("span", { class: "dim small" }, same) }, el("div", { class: "scroll" }, el("table", { class: "compare-table" }, el("thead", null, head), el("tbody", null, steps)))),
    );
  }
  main.replaceChildren(el("h1", { class: "visually-hidden" }, "Two videos, step by step"));
  load();
  return {};
}
