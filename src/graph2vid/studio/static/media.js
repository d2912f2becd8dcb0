// Which video, which captions; and the run.

import { el } from "/view/dom.js";
import * as api from "./api.js";
import { button, choice, fileButton, formatBytes, keepingFocus, labelled, panel, plural, toast, trying } from "./parts.js";

const PLACES = { upload: "added here", folder: "your folder", sample: "sample" };

export function mountMedia(main, context) {
  const { project, about } = context;
  let files = [];
  let sending = null;
  const first = { video: project.video, captions: project.captions }; // what is in use when the page is opened is listed first

  let isOld = false; // what went wrong last is told until something is changed
  const change = (changes) => {
    isOld = true;
    return changing(changes);
  };
  const changing = (changes) => context.inTurn(() => trying(async () => context.take(await api.patch(context.path(), changes))));
  async function load() {
    files = (await trying(() => api.get(context.path("/media")))) ?? [];
    draw();
  }

  async function send(file) {
    const { video, captions } = about.suffixes;
    const suffix = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
    if (![...video, ...captions].includes(suffix)) {
      toast(`${file.name} is neither a video (${video.join(", ")}) nor captions (${captions.join(", ")}).`, "bad");
      return;
    }
    if (file.size > about.upload_limit) {
      toast(`${file.name} is larger than the ${formatBytes(about.upload_limit)} that are taken. Ask whoever started the studio to open it with the folder of videos.`, "bad");
      return;
    }
    await trying(async () => {
      const request = api.upload(context.path(`/media/${encodeURIComponent(file.name)}`), file, (part) => {
        sending.part = part;
        progress.value = part;
      });
      sending = { name: file.name, part: 0, stop: request.stop };
      draw();
      try {
        const made = await request;
        sending = null;
        await load();
        await change({ [made.kind]: { place: "upload", name: made.name } });
      } finally {
        sending = null;
        draw();
      }
    });
  }
  const preview = el("video", { class: "preview", controls: true, preload: "metadata", "aria-label": "The chosen video" });
  const progress = el("progress", { max: 1, value: 0, "aria-label": "Upload" });

  function list(kind, chosen, none) {
    const isUsed = (file) => first[kind]?.place === file.place && first[kind]?.name === file.name;
    const rows = files.filter((file) => file.kind === kind).sort((a, b) => Number(isUsed(b)) - Number(isUsed(a)));
    const option = (file) => {
      const isChosen = chosen?.place === file.place && chosen?.name === file.name;
      const radio = el("input", { type: "radio", name: kind, "data-key": `${kind}-${file.place}-${file.name}`, checked: isChosen, onchange: () => change({ [kind]: { place: file.place, name: file.name } }) });
      const drop = file.place === "upload" ? button("", () => dropFile(file), { sign: "bin", kind: "round quiet", "aria-label": `Delete ${file.name}`, key: `drop-${file.name}` }) : null;
      return el("li", { class: "file" }, el("label", { class: "option" }, radio, el("span", null, el("strong", null, file.name), el("span", { class: "dim small" }, `${PLACES[file.place]} · ${formatBytes(file.bytes)}`))), drop);
    };
    const nothing = el("li", { class: "file" }, el("label", { class: "option" }, el("input", { type: "radio", name: kind, "data-key": `${kind}-none`, checked: !chosen, onchange: () => change({ [kind]: null }) }), el("span", null, el("strong", null, none[0]), el("span", { class: "dim small" }, none[1]))));
    const gone = chosen && !chosen.there ? el("p", { class: "warning" }, `${chosen.name} is not there any more.`) : null;
    return el("div", null, gone, el("ul", { class: "files" }, rows.map(option), nothing));
  }

  async function dropFile(file) {
    if (!window.confirm(`Delete ${file.name}?`)) return;
    await trying(() => api.remove(context.path(`/media/${encodeURIComponent(file.name)}`)));
    await context.reload();
    await load();
  }

  function run() {
    const busy = ["waiting", "running"].includes(project.job?.state);
    const missing = !project.flow ? "First a flow graph is needed." : !project.video && !project.captions ? "Choose a video, or captions alone." : null;
    const hint = missing ?? (project.video && !project.captions ? "Speech is transcribed on this machine; an hour of video takes some minutes, and only the first time." : "The transcript is compared with the steps.");
    if (busy) isOld = false;
    const last = !isOld && project.job?.kind === "ground" && project.job.state === "failed" ? el("p", { class: "warning" }, project.job.message) : null;
    const number = project.corrections.filter((one) => one.applies).length;
    return panel(
      "Ground the video",
      { name: "run" },
      project.video?.there ? preview : null,
      el("ul", { class: "checks" }, check(Boolean(project.flow), project.flow ? `${plural(project.flow.steps.length, "step")}, ${project.orders.words}` : "no flow graph"), check(Boolean(project.video), project.video?.name ?? "no video"), check(true, project.captions?.name ?? (project.video ? "speech recognition" : "no captions"), !project.captions), number ? check(true, plural(number, "correction")) : null),
      el("p", { class: "buttons" }, button(busy ? "Running …" : project.result ? "Ground again" : "Ground the video", () => context.start("/ground"), { kind: "primary", sign: "play", key: "run", disabled: busy || Boolean(missing) })),
      el("p", { class: "dim small" }, hint),
      last,
      settings(),
    );
  }
  const check = (good, text, weak = false) => el("li", { class: good && !weak ? "good" : "" }, el("span", { class: "check-sign", "aria-hidden": "true" }, good && !weak ? "✓" : "–"), text);

  // One field for each option that the studio sets, as the server describes it; an empty one is the default.
  function setting({ name, help, kind, default: usual }) {
    const isFlag = kind === "bool";
    const isNumber = kind === "float" || kind === "int";
    const value = ({ target }) => (isFlag ? target.checked : target.value === "" ? null : isNumber ? Number(target.value) : target.value);
    const shown = isFlag ? { type: "checkbox", checked: project[name] } : { type: isNumber ? "number" : "text", step: "any", value: project[name] ?? "", placeholder: usual ?? "", class: "field" };
    const label = name.replaceAll("_", " ");
    return labelled(label[0].toUpperCase() + label.slice(1), el("input", { ...shown, "data-key": name, onchange: (event) => change({ [name]: value(event) }) }), help);
  }

  function settings() {
    const fields = about.settings.filter((one) => one.name !== "parser").map(setting);
    return el("details", { class: "more" }, el("summary", { "data-key": "settings" }, "Settings"), el("div", { class: "more-body" }, fields));
  }

  function draw() {
    const source = project.video?.there ? `/api/${context.path(`/video?v=${encodeURIComponent(`${project.video.place}/${project.video.name}`)}`)}` : "";
    if (preview.getAttribute("src") !== source && source) preview.src = source;
    const isOpen = main.querySelector("details.more")?.open;
    keepingFocus(main, () => {
      progress.value = sending?.part ?? 0;
      const accept = [...about.suffixes.video, ...about.suffixes.captions].join(",");
      const tool = sending ? el("span", { class: "sending" }, el("span", { class: "small" }, sending.name), progress, button("Stop", sending.stop, { kind: "small", key: "stop" })) : fileButton("Add a file", accept, send, { key: "hand-in" });
      const note = about.videos ? null : el("p", { class: "dim small tip-note" }, "Files can also be dropped here. The videos of a folder that the studio is opened with are listed by themselves.");
      main.replaceChildren(
        project.videos.length > 1 ? el("div", { class: "page-head" }, el("a", { class: "button", href: context.link("video") }, "All videos"), el("h1", null, project.video?.name ?? project.captions?.name ?? "No video yet")) : el("h1", { class: "visually-hidden" }, "Video"),
        el(
          "div",
          { class: "split" },
          el(
            "div",
            { class: "column" },
            panel("Video", { tools: tool, name: "drop-zone" }, list("video", project.video, ["No video", "captions alone are grounded"]), note),
            panel("Transcript", {}, list("captions", project.captions, ["No captions", "speech is transcribed"])),
            project.videos.length > 1 ? null : panel("More videos of this procedure", {}, el("p", { class: "dim" }, "Many people do the same thing, each in their own way: ground all of them, compare them, and let the studio learn from those that you have corrected."), el("p", { class: "buttons" }, el("a", { class: "button", href: context.link("videos"), "data-key": "more-videos" }, "Add more videos"))),
          ),
          run(),
        ),
      );
      if (isOpen) main.querySelector("details.more").open = true;
    });
  }
  const over = (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault();
  const dropped = (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    send(file);
  };
  main.addEventListener("dragover", over);
  main.addEventListener("drop", dropped);
  draw();
  load();
  return {
    update: draw,
    destroy() {
      sending?.stop();
      main.removeEventListener("dragover", over);
      main.removeEventListener("drop", dropped);
    },
  };
}
