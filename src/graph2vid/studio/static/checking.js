// On the page of a result: which of the videos of the project it is, and that all of it is right now.

import { el } from "/view/dom.js";
import * as api from "./api.js";
import { button, choice, toast, trying } from "./parts.js";

export function makeChecking(context) {
  const { project } = context;

  const check = () => context.inTurn(() => trying(async () => {
    const isChecked = !project.checked;
    context.take(await api.put(context.path("/checked"), { checked: isChecked }));
    const { videos, next, least } = await api.get(context.path("/videos"));
    const checked = videos.filter((one) => one.status === "checked").length;
    if (isChecked && checked >= least && checked < videos.length) {
      await context.start("/learn");
      return;
    }
    const more = isChecked && checked < least ? ` ${checked} of ${least}: then the studio learns from them.` : "";
    const [following] = next;
    toast(isChecked ? `Checked.${more}` : "No longer checked.", "good", isChecked && following ? { act: () => context.go("result", following.id), words: "Next video" } : {});
  }));
  const move = (by) => {
    const at = project.videos.findIndex((one) => one.id === project.shown) + by;
    if (project.videos[at]) context.go("result", project.videos[at].id);
  };

  return {
    keys: [
      ["Project", ["c", "C"], "all of this video is right: checked", check],
      ["Project", ["Shift+N"], "the next video", () => move(1)],
      ["Project", ["Shift+P"], "the video before", () => move(-1)],
    ],
    parts() {
      if (project.videos.length < 2) return [];
      const pick = choice(project.videos.map((one) => [one.id || "first", one.title]), { value: project.shown || "first", label: "Video", key: "which-video" });
      pick.addEventListener("change", () => context.go("result", pick.value));
      return [
        el("span", { class: "which-video" }, button("", () => move(-1), { sign: "back", kind: "round quiet", "aria-label": "The video before", key: "video-before", disabled: project.videos[0].id === project.shown }), pick, button("", () => move(1), { sign: "forth", kind: "round quiet", "aria-label": "The next video", key: "video-after", disabled: project.videos.at(-1).id === project.shown })),
        button(project.checked ? "Checked" : "Mark as checked", check, { sign: "tick", kind: project.checked ? "checked" : "", key: "checked", "aria-pressed": String(project.checked), title: "All of it is right now: the studio learns from it (C)" }),
      ];
    },
  };
}
