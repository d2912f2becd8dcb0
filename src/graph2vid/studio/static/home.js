// The list of projects.

import { el } from "/view/dom.js";
import * as api from "./api.js";
import { button, picture, plural, trying } from "./parts.js";

export async function mountHome(main) {
  const list = el("ul", { class: "project-list" });
  const next = el("p", { class: "next-look", hidden: true });

  async function load() {
    const projects = await api.get("projects");
    list.replaceChildren(...projects.map(card));
    const worst = projects.filter((one) => one.doubtful).sort((a, b) => b.doubtful - a.doubtful)[0];
    next.hidden = !worst;
    if (worst) next.replaceChildren("To look at next: ", el("a", { href: `#/${worst.name}/result` }, worst.title || "Untitled"), ` (${plural(worst.doubtful, "doubtful segment")})`);
    empty.hidden = projects.length > 0;
  }

  function card(project) {
    const facts = [project.steps ? plural(project.steps, "step") : "no graph yet", project.videos > 1 ? plural(project.videos, "video") : project.video || "no video yet"];
    const state = project.problem ? el("p", { class: "badge-note bad" }, "damaged") : project.has_result ? el("p", { class: "badge-note good" }, project.videos > 1 ? (project.checked ? `${project.checked} of ${project.videos} checked` : `${project.grounded} of ${project.videos} grounded`) : project.checked ? "checked" : "grounded") : el("p", { class: "badge-note" }, "in work");
    const title = project.title || "Untitled";
    if (project.confidence !== null) facts.push(`${Math.round(100 * project.confidence)}% sure on average`);
    if (project.doubtful) facts.push(`${project.doubtful} doubtful`);
    return el(
      "li",
      { class: "panel project-card" },
      project.has_picture ? picture(`projects/${project.name}/still`) : el("div", { class: "still no-still", "aria-hidden": "true" }, project.steps ? "no video" : "no graph yet"),
      el("div", { class: "card-head" }, el("h2", null, el("a", { href: `#/${project.name}/` }, title)), state),
      el("p", { class: "dim small" }, project.problem || facts.join(" · ")),
      project.bar.length ? el("div", { class: "mini", "aria-hidden": "true" }, project.bar.map(([start, end, colour]) => el("span", { style: { left: `${100 * start}%`, width: `${100 * (end - start)}%`, "--colour": colour } }))) : null,
      el("div", { class: "card-foot" }, el("span", { class: "dim small" }, since(project.changed)), button("", () => drop(project, title), { sign: "bin", kind: "round quiet", "aria-label": `Delete ${title}` })),
    );
  }

  async function drop(project, title) {
    if (!window.confirm(`Delete “${title}” with all its files? This cannot be undone.`)) return;
    await trying(() => api.remove(`projects/${project.name}`));
    await load();
  }

  const make = (path, body) =>
    trying(async () => {
      const project = await api.post(path, body);
      location.hash = `#/${project.name}/procedure`;
    });
  const fresh = () => button("New project", () => make("projects", { title: "" }), { kind: "primary", sign: "plus" });
  const sample = () => button("Try the sample", () => make("projects/sample"), { sign: "play" });
  const empty = el(
    "div",
    { class: "panel empty", hidden: true },
    el("h2", null, "When does each step happen?"),
    el("p", { class: "dim" }, "Bring a procedure in words and a video of somebody doing it. The studio finds which step must wait for which, and when each of them is shown, in whatever order; and you correct what you know better."),
    el("p", { class: "buttons" }, fresh(), sample()),
  );
  main.replaceChildren(el("div", { class: "page-head" }, el("h1", null, "Projects"), el("span", { class: "spring" }), sample(), fresh()), empty, next, list);
  await trying(load);
  return {};
}

function since(seconds) {
  const minutes = Math.round((Date.now() / 1000 - seconds) / 60);
  if (minutes < 1) return "changed just now";
  if (minutes < 60) return `changed ${plural(minutes, "minute")} ago`;
  if (minutes < 36 * 60) return `changed ${plural(Math.round(minutes / 60), "hour")} ago`;
  return `changed on ${new Date(seconds * 1000).toLocaleDateString()}`;
}
