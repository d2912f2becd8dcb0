// The studio: which page is shown, the project in hand, and the job that runs for it.

import { el } from "/view/dom.js";
import { themeSwitch } from "/view/top.js";
import * as api from "./api.js";
import { mountCompare } from "./compare.js";
import { learnt, mountCorpus } from "./corpus.js";
import { mountEditor } from "./editor.js";
import { mountHome } from "./home.js";
import { mountMedia } from "./media.js";
import { button, forgetRefusals, plural, timeLeft, toast, trying } from "./parts.js";
import { mountProcedure } from "./procedure.js";
import { mountResult } from "./result.js";

/** @type {[string, string, (main: HTMLElement, context: any, asked: {other: string, query: URLSearchParams, view: Promise<any> | null}) => any][]} */
const TABS = [
  ["procedure", "Procedure", mountProcedure],
  ["graph", "Flow graph", mountEditor],
  ["video", "Videos", (main, context) => (context.project.videos.length > 1 ? mountCorpus : mountMedia)(main, context)],
  ["result", "Result", mountResult],
];
// Pages that belong to the tab of the videos: all of them, the files of one, and two side by side.
/** @type {typeof TABS} */
const MORE = [
  ["videos", "Videos", mountCorpus],
  ["files", "Files", mountMedia],
  ["compare", "Compare", mountCompare],
];

const head = document.getElementById("head");
const main = document.getElementById("main");
const jobBar = document.getElementById("job");
const studio = { about: null, project: null, tab: null, page: null, followed: null, stopFollowing: null, turn: 0, visit: 0, failedAt: null, last: Promise.resolve() };
const TAB_OF = { parse: "graph", ground: "result", check: "result" };
const DONE = { parse: "The flow graph is there.", ground: "The video is grounded.", check: "The order is checked.", "ground-all": "The videos are grounded.", clips: "The clips are saved." };
const isNews = (now) => Object.keys(now).some((key) => JSON.stringify(now[key]) !== JSON.stringify(studio.project?.[key]));
const isRunning = (job) => ["waiting", "running"].includes(job?.state);

const context = {
  get project() {
    return studio.project;
  },
  get about() {
    return studio.about;
  },
  // The revision of the project whose job failed last: its message goes when something is changed.
  get failedAt() {
    return studio.failedAt;
  },
  // The address of something of the project, and of the video that is shown (or of another one of it).
  path(rest = "", video = studio.project.shown) {
    const query = video ? `${rest.includes("?") ? "&" : "?"}video=${encodeURIComponent(video)}` : "";
    return `projects/${studio.project.name}${rest}${query}`;
  },
  link: (tab, video = studio.project.shown) => `#/${studio.project.name}/${tab}${video ? `/${video}` : ""}`,
  go(tab, video = studio.project.shown) {
    location.hash = context.link(tab, video);
  },
  // Draws the page anew: what it is about has changed.
  again: () => trying(show),
  take(changes) {
    const { name, shown } = studio.project ?? {};
    if (!studio.project || (changes.name ?? name) !== name || (changes.shown ?? shown) !== shown) return; // another one is open by now
    studio.turn += 1;
    Object.assign(studio.project, changes);
    drawHead();
    studio.page?.update?.();
  },
  async reload() {
    const turn = (studio.turn += 1);
    const now = await api.get(context.path());
    if (turn !== studio.turn) return; // something newer is known by now
    if (isNews(now)) context.take(now);
    const { job } = studio.project ?? {};
    if (isRunning(job) && job.id !== studio.followed) followJob(job, TAB_OF[job.kind]); // begun in another window
  },
  // Does something, tells what goes wrong, and shows what is there now if others have changed it or are at work.
  async upToDate(work) {
    return trying(async () => {
      try {
        return await work();
      } catch (error) {
        if ([409, 429].includes(error.status)) await context.reload();
        throw error;
      }
    });
  },
  // Whoever is quicker than the server waits: each change builds on the one before, also if that was made on another page.
  inTurn: (work) => (studio.last = studio.last.then(work, work)),
  // Starts a job and goes to its page when it is done.
  async start(path, body) {
    const job = await context.upToDate(() => api.post(context.path(path), body));
    if (job) followJob(job, TAB_OF[job.kind]);
  },
};

function wanted() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, tab = "", video = "", other = ""] = path.split("/");
  return { name: decodeURIComponent(name), tab, video: video === "first" ? "" : video, other, query: new URLSearchParams(query) };
}

// What is being changed on the page that is left is about its project and video: the next page begins with the outcome.
async function allChanged() {
  for (let awaited = null; awaited !== studio.last; ) {
    awaited = studio.last;
    await awaited.catch(() => {}); // told where it was asked for
  }
}

async function show() {
  const { name, tab, video, other, query } = wanted();
  const visit = (studio.visit += 1); // whoever goes on while something is fetched is led there, and not here
  await allChanged();
  if (visit !== studio.visit) return;
  forgetRefusals();
  studio.page?.destroy?.();
  studio.page = null;
  const about = studio.about ? null : api.get("about"); // asked for at the same time
  about?.catch(() => {}); // told below
  let view = null; // of a result, likewise
  if (studio.project?.name !== name || studio.project.shown !== video) {
    studio.stopFollowing?.();
    studio.followed = null;
    jobBar.hidden = true;
    studio.project = null;
    if (name) {
      const which = video ? `?video=${encodeURIComponent(video)}` : "";
      view = tab === "result" ? api.get(`projects/${name}/view${which}`) : null;
      view?.catch(() => {}); // told where it is shown
      try {
        const found = await api.get(`projects/${name}${which}`);
        if (visit !== studio.visit) return;
        studio.project = found;
        const { videos, shown } = studio.project;
        if (!videos.some((one) => one.id === shown)) { // the first one was taken out
          location.hash = context.link(tab || firstTab(), videos[0].id);
          return;
        }
      } catch (error) {
        if (visit !== studio.visit) return;
        toast(error.message, "bad");
        location.hash = "#/";
        return;
      }
      const { job } = studio.project;
      studio.failedAt = studio.project.revision;
      if (isRunning(job)) followJob(job, TAB_OF[job.kind]);
      else tellInterruption();
    }
  }
  studio.about ??= await about;
  if (visit !== studio.visit) return;
  studio.tab = null;
  main.replaceChildren();
  if (studio.project) {
    const known = [...TABS, ...MORE].find(([key]) => key === tab);
    if (!known) {
      context.go(firstTab());
      return;
    }
    studio.tab = tab;
    drawHead();
    main.className = `studio-main page-${tab}`;
    studio.page = known[2](main, context, { other, query, view });
  } else {
    drawHead();
    main.className = "studio-main page-home";
    const page = await mountHome(main);
    if (visit !== studio.visit) return;
    studio.page = page;
  }
  document.title = `${studio.project?.title || (studio.project ? "Untitled" : "Projects")} · graph2vid studio`;
}

function firstTab() {
  const { flow, result } = studio.project;
  return result ? "result" : flow ? "graph" : "procedure";
}

function drawHead() {
  const { project } = studio;
  const home = el("a", { class: "studio-brand", href: "#/", "aria-label": "graph2vid studio: all projects" }, el("img", { src: "/static/icon.svg", alt: "", width: 26, height: 26 }), el("span", null, "graph2vid studio"));
  /** @type {HTMLElement[]} */
  const parts = [home];
  if (project) {
    const title = el("input", {
      class: "title-field",
      value: project.title,
      placeholder: "Untitled",
      maxlength: 200,
      "aria-label": "Title of the project",
      onchange: (event) => trying(async () => context.take(await api.patch(context.path(), { title: event.target.value }))),
    });
    const ready = { procedure: true, graph: true, video: true, result: Boolean(project.result) };
    const done = { procedure: Boolean(project.procedure), graph: Boolean(project.flow), video: Boolean(project.video || project.captions), result: Boolean(project.result?.current) };
    const tabs = TABS.map(([key, text], place) =>
      el(
        "a",
        { href: context.link(key), class: `tab${done[key] ? " done" : ""}`, "aria-current": key === (MORE.some(([more]) => more === studio.tab) ? "video" : studio.tab) ? "page" : null, "aria-disabled": ready[key] ? null : "true" },
        el("span", { class: "tab-number", "aria-hidden": "true" }, done[key] ? "✓" : place + 1),
        el("span", { class: "tab-text" }, text),
      ),
    );
    parts.push(title, el("nav", { class: "tabs", "aria-label": "Parts of the project" }, tabs));
  }
  parts.push(el("span", { class: "spring" }), el("a", { class: "dim small api-link", href: "/docs" }, "API"), studio.theme ??= themeSwitch());
  const typing = document.activeElement?.classList.contains("title-field");
  if (!typing) head.replaceChildren(...parts);
}

function tellInterruption() {
  const { state, message } = studio.project?.job ?? {};
  if (state === "interrupted") toast(`${message[0].toUpperCase()}${message.slice(1)}.`, "warn");
}

function followJob(job, tab) {
  const { name, shown } = studio.project;
  const isOther = () => studio.project?.name !== name || studio.project.shown !== shown;
  studio.stopFollowing?.();
  studio.followed = job.id;
  studio.project.job = job;
  const bar = el("progress", { max: 1, "aria-label": "Progress of the job" });
  const stage = el("span", { class: "job-stage", role: "status" });
  const stop = button("Cancel", () => trying(() => api.remove(`jobs/${job.id}`)), { kind: "cancel-job" });
  const left = el("span", { class: "job-left dim small" });
  jobBar.replaceChildren(el("span", { class: "spinner", "aria-hidden": "true" }), stage, bar, left, stop);
  jobBar.hidden = false;
  const tell = async (state) => {
    if (isOther()) return;
    const words = state.stage[0].toUpperCase() + state.stage.slice(1);
    if (stage.textContent !== `${words} …`) {
      stage.textContent = `${words} …`;
      studio.page?.progress?.(state);
    }
    left.textContent = timeLeft(state);
    if (state.total) bar.value = Math.min(1, state.done / state.total);
    else bar.removeAttribute("value");
    studio.project.job = state;
    if (isRunning(state)) return;
    jobBar.hidden = true;
    studio.followed = null;
    await context.reload();
    studio.page?.update?.(); // also where nothing came of it
    const { warnings } = state;
    if (warnings.length > 2) toast(`${warnings[0]} (and ${plural(warnings.length - 1, "more warning")})`, "warn");
    else for (const warning of warnings) toast(warning, "warn");
    if (state.state === "failed") {
      studio.failedAt = studio.project.revision;
      toast(state.message, "bad", { isRefusal: true });
      studio.page?.update?.();
    }
    if (state.state === "cancelled") toast("Cancelled. Nothing was changed.");
    if (state.state === "done") {
      if (state.kind === "clips") await trying(() => api.download(context.path("/clips")));
      const said = state.kind === "learn" ? await learnt(context) : DONE[state.kind];
      toast(said);
      if (tab && studio.tab !== tab) context.go(tab);
    }
  };
  const lost = (gone) => {
    if (isOther()) return;
    stage.textContent = "The studio does not answer. Is it still running?";
    if (!gone) return; // the browser asks again
    jobBar.hidden = true;
    studio.followed = null;
    trying(async () => {
      await context.reload();
      tellInterruption();
    });
  };
  studio.stopFollowing = api.follow(job.id, tell, lost);
  studio.page?.update?.();
}

document.querySelector(".skip-link").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which page is shown
  main.focus();
});
window.addEventListener("hashchange", () => trying(show));
// Another window may have changed the project meanwhile.
window.addEventListener("focus", () => studio.project && trying(context.reload));
trying(show);
