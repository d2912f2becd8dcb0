// The studio: which page is shown, the project in hand, and the job that runs for it.

import { el } from "/view/dom.js";
import { themeSwitch } from "/view/top.js";
import * as api from "./api.js";
import { mountEditor } from "./editor.js";
import { mountHome } from "./home.js";
import { mountMedia } from "./media.js";
import { button, toast, trying } from "./parts.js";
import { mountProcedure } from "./procedure.js";
import { mountResult } from "./result.js";

const TABS = [
  ["procedure", "Procedure", mountProcedure],
  ["graph", "Flow graph", mountEditor],
  ["video", "Video", mountMedia],
  ["result", "Result", mountResult],
];

const head = document.getElementById("head");
const main = document.getElementById("main");
const jobBar = document.getElementById("job");
const studio = { about: null, project: null, tab: null, page: null, stopFollowing: null };

const context = {
  get project() {
    return studio.project;
  },
  get about() {
    return studio.about;
  },
  path: (rest = "") => `projects/${studio.project.name}${rest}`,
  go: (tab) => {
    location.hash = `#/${studio.project.name}/${tab}`;
  },
  take(changes) {
    if (!studio.project || (changes.name ?? studio.project.name) !== studio.project.name) return; // another one is open by now
    Object.assign(studio.project, changes);
    drawHead();
    studio.page?.update?.();
  },
  async reload() {
    context.take(await api.get(context.path()));
  },
  // Starts a job and goes to `tab` when it is done.
  async start(path, body, tab) {
    const job = await trying(() => api.post(context.path(path), body));
    if (job) followJob(job, tab);
  },
};

function wanted() {
  const [name, tab] = location.hash.replace(/^#\/?/, "").split("/");
  return { name: decodeURIComponent(name || ""), tab: tab || "" };
}

async function show() {
  const { name, tab } = wanted();
  studio.page?.destroy?.();
  studio.page = null;
  studio.about ??= await api.get("about");
  if (studio.project?.name !== name) {
    studio.stopFollowing?.();
    jobBar.hidden = true;
    studio.project = null;
    if (name) {
      try {
        studio.project = await api.get(`projects/${name}`);
      } catch (error) {
        toast(error.message, "bad");
        location.hash = "#/";
        return;
      }
      const { job } = studio.project;
      if (job && ["waiting", "running"].includes(job.state)) followJob(job, job.kind === "parse" ? "graph" : "result");
      else if (job?.state === "interrupted") toast(job.message[0].toUpperCase() + job.message.slice(1) + ".", "warn");
    }
  }
  studio.tab = null;
  main.replaceChildren();
  if (studio.project) {
    const known = TABS.find(([key]) => key === tab);
    if (!known) {
      context.go(firstTab());
      return;
    }
    studio.tab = tab;
    drawHead();
    main.className = `studio-main page-${tab}`;
    studio.page = known[2](main, context);
  } else {
    drawHead();
    main.className = "studio-main page-home";
    studio.page = await mountHome(main, context);
  }
  document.title = `${studio.project?.title || (studio.project ? "Untitled" : "Projects")} · graph2vid studio`;
}

function firstTab() {
  const { flow, result } = studio.project;
  return result ? "result" : flow ? "graph" : "procedure";
}

function drawHead() {
  const { project } = studio;
  const home = el("a", { class: "studio-brand", href: "#/" }, el("img", { src: "/static/icon.svg", alt: "", width: 26, height: 26 }), el("span", null, "graph2vid studio"));
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
        { href: `#/${project.name}/${key}`, class: `tab${done[key] ? " done" : ""}`, "aria-current": key === studio.tab ? "page" : null, "aria-disabled": ready[key] ? null : "true" },
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

function followJob(job, tab) {
  const { name } = studio.project;
  studio.stopFollowing?.();
  const bar = el("progress", { max: 1, "aria-label": "Progress of the job" });
  const stage = el("span", { class: "job-stage", role: "status" });
  const stop = button("Cancel", () => trying(() => api.remove(`jobs/${job.id}`)), { kind: "cancel-job" });
  jobBar.replaceChildren(el("span", { class: "spinner", "aria-hidden": "true" }), stage, bar, stop);
  jobBar.hidden = false;
  const tell = async (state) => {
    if (studio.project?.name !== name) return;
    if (state === null) {
      jobBar.hidden = true;
      toast("The studio does not answer. Is it still running?", "bad");
      return;
    }
    const words = state.stage[0].toUpperCase() + state.stage.slice(1);
    if (stage.textContent !== `${words} …`) stage.textContent = `${words} …`;
    if (state.total) bar.value = Math.min(1, state.done / state.total);
    else bar.removeAttribute("value");
    studio.project.job = state;
    if (["waiting", "running"].includes(state.state)) return;
    jobBar.hidden = true;
    await context.reload();
    for (const warning of state.warnings) toast(warning, "warn");
    if (state.state === "failed") toast(state.message, "bad");
    if (state.state === "cancelled") toast("Cancelled. Nothing was changed.");
    if (state.state === "done") {
      toast(state.kind === "parse" ? "The flow graph is there." : "The video is grounded.");
      if (studio.tab === tab) studio.page?.fresh?.();
      else context.go(tab);
    }
  };
  studio.stopFollowing = api.follow(job.id, tell);
  studio.page?.update?.();
}

document.querySelector(".skip-link").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which page is shown
  main.focus();
});
window.addEventListener("hashchange", () => trying(show));
trying(show);
