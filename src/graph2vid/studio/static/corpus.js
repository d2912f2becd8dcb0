// The videos of a project: a list, grounding all, what was learnt from those that are checked, and where to correct next.

import { chip, el } from "/view/dom.js";
import { formatSpan, formatTime } from "/view/time.js";
import * as api from "./api.js";
import { exportMenu, imported } from "./exporting.js";
import { button, fileButton, formatBytes, keepingFocus, panel, picture, plural, shortened, toast, trying } from "./parts.js";

const STATUS = { new: "not grounded", grounded: "grounded", outdated: "outdated", checked: "checked" };
const CHOSEN = {
  general: "What was checked so far does not help with the others: they are grounded as before.",
  unlabelled: "The words of all videos helped; what was checked added nothing to that yet.",
  labelled: "The others are grounded with what was learnt.",
};

const points = ({ gain, error }) => (gain === null ? "" : `${gain >= 0 ? "+" : "−"}${Math.abs(gain).toFixed(1)} ± ${error.toFixed(1)} points`);

// What was learnt, in a sentence, when that is done.
export async function learnt(context) {
  const { lesson, videos } = await api.get(context.path("/videos"));
  if (!lesson || lesson.chosen === "general") return CHOSEN.general;
  return `Learnt from ${plural(lesson.checked, "checked video")}: ${points(lesson)} of overlap on them, by cross-validation. ${plural(videos.length - lesson.checked, "other video")} grounded again.`;
}

export function mountCorpus(main, context) {
  const { project, about } = context;
  let corpus = { videos: [], next: [], lesson: null, least: 3 };
  let files = [];
  let sending = null; // which of the files is being added
  const chosen = new Set(); // to be compared
  let isAdding = project.videos.length < 2;

  async function load() {
    const found = await trying(() => Promise.all([api.get(context.path("/videos")), api.get(context.path("/media"))]));
    if (!found) return;
    [corpus, files] = found;
    for (const id of [...chosen]) if (!corpus.videos.some((one) => one.id === id)) chosen.delete(id);
    draw();
  }

  const busy = () => ["waiting", "running"].includes(project.job?.state);
  const stepOf = (id) => {
    const place = (project.flow?.steps ?? []).findIndex((step) => step.id === id);
    const box = project.picture?.boxes[place];
    return { number: place < 0 ? null : place + 1, place: 1, colour: box?.colour, ink: box?.ink };
  };

  // -- adding -----------------------------------------------------------------------------------------------------

  // Videos and the captions that are named like them, less those that are in the project.
  function pairs() {
    const used = new Set(corpus.videos.flatMap((one) => [one.title, one.captions]));
    const found = new Map();
    for (const file of files.filter(({ place }) => place !== "sample")) {
      const key = `${file.place}/${file.name.replace(/\.[^./]+$/, "").replace(/\.[a-z]{2}(-[A-Za-z]+)?$/, "")}`;
      if (!found.has(key)) found.set(key, {});
      found.get(key)[file.kind] ??= file;
    }
    return [...found.entries()].filter(([, { video, captions }]) => !used.has((video ?? captions).name)).map(([key, pair]) => ({ key, ...pair }));
  }
  const chosenMedia = (file) => (file ? { place: file.place, name: file.name } : null);
  const add = (some) =>
    trying(async () => {
      for (const { video, captions } of some) await api.post(context.path("/videos", ""), { video: chosenMedia(video), captions: chosenMedia(captions) });
      isAdding = false;
      await context.reload();
      await load();
      toast(`${plural(some.length, "video")} added.`);
    });
  async function handIn(given) {
    const before = new Set(pairs().map((one) => one.key));
    await trying(async () => {
      for (const [at, file] of given.entries()) {
        sending = `${file.name} (${at + 1} of ${given.length})`;
        draw();
        await api.upload(context.path(`/media/${encodeURIComponent(file.name)}`, ""), file, () => {});
      }
    });
    sending = null;
    await load();
    await add(pairs().filter((one) => !before.has(one.key)));
  }

  function adding() {
    const found = pairs();
    const accept = [...about.suffixes.video, ...about.suffixes.captions].join(",");
    const boxes = found.map((one) => {
      const { video, captions } = one;
      const main_ = video ?? captions;
      const note = video ? (captions ? `with ${captions.name}` : "speech is transcribed") : "captions alone";
      return el("li", { class: "file" }, el("label", { class: "option" }, el("input", { type: "checkbox", value: one.key, "data-key": `add-${one.key}` }), el("span", null, el("strong", null, main_.name), el("span", { class: "dim small" }, `${note} · ${formatBytes(main_.bytes)}`))));
    });
    const ticked = () => found.filter((one) => [...main.querySelectorAll(".adding input:checked")].some((box) => box.value === one.key));
    return panel(
      "Add videos",
      { name: "adding", tools: sending ? el("span", { class: "dim small", role: "status" }, `Adding ${sending} …`) : fileButton("Add files", accept, handIn, { multiple: true, key: "hand-in" }) },
      boxes.length ? el("ul", { class: "files" }, boxes) : el("p", { class: "dim" }, about.videos ? "All videos of your folder are in the project." : "The videos of a folder that the studio is opened with are listed here; other files can be added."),
      el("p", { class: "buttons" }, boxes.length ? button("Add what is ticked", () => (ticked().length ? add(ticked()) : toast("Tick the videos to add.", "warn")), { kind: "primary", key: "add" }) : null, boxes.length > 1 ? button(`Add all ${found.length}`, () => add(found), { key: "add-all" }) : null),
    );
  }

  // -- learning ---------------------------------------------------------------------------------------------------

  function learning() {
    const { lesson, least, videos } = corpus;
    const checked = videos.filter((one) => one.status === "checked").length;
    const can = checked >= least;
    const words = lesson?.words.flatMap((some, at) => (some.length && project.flow ? [el("li", null, chip(stepOf(project.flow.steps[at]?.id)), el("span", null, some.slice(0, 5).join(", ")))] : [])) ?? [];
    const told = lesson
      ? [
          el("p", { class: "lesson", role: "status" }, el("strong", { class: "gain" }, points(lesson) || "nothing gained yet"), el("span", null, ` of overlap on the ${plural(lesson.checked, "checked video")}, by cross-validation. ${CHOSEN[lesson.chosen]}`)),
          words.length ? el("details", { class: "more" }, el("summary", { "data-key": "words" }, "Words that speak for the steps"), el("ul", { class: "words-of-steps" }, words)) : null,
        ]
      : [el("p", { class: "dim" }, `Correct a few videos and mark each as checked: from ${least} on, the studio learns what people say while they do a step, and grounds the others again.`)];
    const label = busy() ? "Running …" : lesson ? "Learn again" : "Learn";
    return panel(
      "Learn from what you check",
      { name: "learning", tools: el("span", { class: "badge-note" }, `${checked} of ${Math.max(least, checked)} checked`) },
      el("progress", { max: least, value: Math.min(checked, least), "aria-label": "Checked videos, of those needed" }),
      ...told,
      lesson && !lesson.current ? el("p", { class: "warning small" }, "Other videos are checked now than those that this was learnt from.") : null,
      el("p", { class: "buttons" }, button(label, () => context.start("/learn"), { kind: can && !lesson?.current ? "primary" : "", key: "learn", disabled: busy() || !can, title: can ? null : `Check ${least} videos first` })),
    );
  }

  function nextToCorrect() {
    if (!corpus.next.length) return null;
    const rows = corpus.next.map((one) => {
      const segments = one.segments.map((part) => {
        const query = new URLSearchParams({ step: part.step, ...(part.start === null ? {} : { t: part.start }) });
        const words = part.start === null ? "not found" : formatSpan(part.start, part.end);
        return el("li", null, el("a", { class: "next-segment", href: `${context.link("result", one.id)}?${query}`, title: part.text }, chip(stepOf(part.step)), el("span", null, shortened(part.text, 26)), el("span", { class: "dim small" }, words)));
      });
      return el("li", { class: "next-video" }, el("a", { href: context.link("result", one.id) }, one.title), el("span", { class: "dim small" }, ` about ${formatTime(one.seconds, 0)} may be wrong`), el("ul", { class: "next-segments" }, segments));
    });
    return panel("Correct next", { name: "correct-next" }, el("p", { class: "dim small" }, "Where a correction teaches most: much may be wrong, and other words are used than in what is checked."), el("ol", { class: "next-list" }, rows));
  }

  // -- the list ---------------------------------------------------------------------------------------------------

  function card(one) {
    const facts = [];
    if (one.duration) facts.push(formatTime(one.duration, 0));
    if (one.confidence !== null) facts.push(`${Math.round(100 * one.confidence)}% sure`);
    if (one.doubtful) facts.push(`${one.doubtful} doubtful`);
    if (one.corrections) facts.push(plural(one.corrections, "correction"));
    if (!one.has_video) facts.push("captions alone");
    const kind = { checked: "good", outdated: "warn" }[one.status] ?? "";
    const tick = el("input", { type: "checkbox", checked: chosen.has(one.id), "data-key": `compare-${one.id}`, "aria-label": `Compare ${one.title}`, onchange: ({ target }) => {
      if (target.checked) chosen.add(one.id);
      else chosen.delete(one.id);
      draw();
    } });
    return el(
      "li",
      { class: "panel project-card video-card", "data-video": one.id },
      one.has_video ? picture(context.path("/still", one.id)) : !corpus.videos.some((other) => other.has_video) ? null : el("div", { class: "still no-still", "aria-hidden": "true" }, "captions"),
      el("div", { class: "card-head" }, el("h2", null, el("a", { href: one.status === "new" ? context.link("files", one.id) : context.link("result", one.id) }, one.title)), el("p", { class: `badge-note ${one.problem ? "bad" : kind}`, title: one.problem || null }, one.problem ? "damaged" : STATUS[one.status])),
      el("p", { class: "dim small" }, one.problem || facts.join(" · ") || "–"),
      one.bar.length ? el("div", { class: "mini", "aria-hidden": "true" }, one.bar.map(([start, end, colour]) => el("span", { style: { left: `${100 * start}%`, width: `${100 * (end - start)}%`, "--colour": colour } }))) : null,
      el("div", { class: "card-foot" }, one.bar.length ? el("label", { class: "check small compare-tick" }, tick, "compare") : el("span", null), el("span", { class: "spring" }), el("a", { class: "button small", href: context.link("files", one.id) }, "Files"), button("", () => drop(one), { sign: "bin", kind: "round quiet", "aria-label": `Take ${one.title} out of the project`, key: `drop-${one.id}` })),
    );
  }
  async function drop(one) {
    if (!window.confirm(`Take ${one.title} out of the project, with its result and corrections? The file stays where it is.`)) return;
    await trying(() => api.remove(context.path("/videos", one.id)));
    if (project.shown === one.id) {
      const [first] = corpus.videos.filter((other) => other.id !== one.id);
      context.go("videos", first?.id ?? "");
      return;
    }
    await context.reload();
    await load();
  }
  const importing = (file) =>
    trying(async () => {
      toast(...(await imported(context, file, true)));
      await load();
    });

  function tools() {
    const todo = corpus.videos.filter((one) => one.status === "new" || one.outdated.length).length;
    const two = [...chosen];
    const grounded = corpus.videos.some((one) => one.bar.length);
    return el(
      "div",
      { class: "page-head" },
      el("h1", null, plural(corpus.videos.length, "video")),
      el("span", { class: "spring" }),
      button("Add videos", () => {
        isAdding = !isAdding;
        draw();
      }, { sign: "plus", key: "adding", "aria-expanded": String(isAdding) }),
      fileButton("Import annotations", ".eaf,.csv,.json", importing, { key: "import", title: "A table with the columns video, step, start, end; tasks of Label Studio; or a file named as its video" }),
      grounded ? exportMenu(context, { title: "Export all", entries: Object.entries(about.titles).map(([key, title]) => [key, title, ".zip", `/exports/${key}`]) }) : null,
      button(two.length === 2 ? "Compare the two" : "Compare two", () => (two.length === 2 ? (location.hash = `#/${project.name}/compare/${two.map((id) => id || "first").join("/")}`) : toast("Tick two grounded videos to compare them.", "warn")), { key: "compare" }),
      button(busy() ? "Running …" : todo ? `Ground all (${todo})` : "All are grounded", () => context.start("/ground-all"), { kind: todo ? "primary" : "", sign: todo ? "play" : "tick", key: "ground-all", disabled: busy() || !todo || !project.flow }),
    );
  }

  function draw() {
    const isOpen = main.querySelector("details.more")?.open;
    keepingFocus(main, () => {
      main.replaceChildren(tools(), ...(isAdding ? [adding()] : []), el("div", { class: "split" }, el("ul", { class: "project-list video-list", "aria-label": "Videos" }, corpus.videos.map(card)), el("div", { class: "column" }, learning(), nextToCorrect())));
      if (isOpen) main.querySelector("details.more").open = true;
    });
  }
  draw();
  load();
  let seen = project.revision;
  return {
    update() {
      if (seen === project.revision && busy()) return draw();
      seen = project.revision;
      return load();
    },
    progress: load, // one more is done
  };
}
