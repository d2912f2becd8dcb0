// Asking the server. What it refuses becomes an Error with its one line.

export class Refusal extends Error {
  constructor(status, message, other = null) {
    super(message);
    this.status = status;
    this.other = other; // the place of the correction that a new one contradicts
  }
}

async function answered(response) {
  if (response.status === 204) return null;
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, body.error ?? `The server answered ${response.status}.`, body.other);
  return body;
}

async function asked(path, options) {
  try {
    return await fetch(`/api/${path}`, options);
  } catch {
    throw new Refusal(0, "The studio does not answer. Is it still running?");
  }
}

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body instanceof Blob) {
    options.body = body;
    options.headers["content-type"] = "application/octet-stream";
  } else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  return answered(await asked(path, options));
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);
export const put = (path, body) => ask("PUT", path, body);
export const patch = (path, body) => ask("PATCH", path, body);
export const remove = (path) => ask("DELETE", path);

// Saves what the server makes as a file; returns what it has to say about it.
export async function download(path) {
  const response = await asked(path);
  if (!response.ok) return answered(response);
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = /filename="([^"]*)"/.exec(response.headers.get("content-disposition"))?.[1] ?? "";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return decodeURIComponent(response.headers.get("x-graph2vid-notes") ?? "").split("\n").filter(Boolean);
}

// Hands in a file; `tell(fraction)` is told how far it is. Returns a promise with `.stop()`.
/**
 * @param {string} path
 * @param {File} file
 * @param {(fraction: number) => void} tell
 * @returns {Promise<any> & {stop: () => void}}
 */
export function upload(path, file, tell) {
  const request = new XMLHttpRequest();
  const sent = new Promise((resolve, reject) => {
    request.open("PUT", `/api/${path}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => event.lengthComputable && tell(event.loaded / event.total));
    request.addEventListener("load", () => {
      if (request.status < 300) resolve(request.response);
      else reject(new Refusal(request.status, request.response?.error ?? `The server answered ${request.status}.`));
    });
    request.addEventListener("error", () => reject(new Refusal(0, "The file was not taken: it is too large, or the studio has ended.")));
    request.addEventListener("abort", () => reject(new Refusal(0, "The upload was stopped.")));
    request.send(file);
  });
  return Object.assign(sent, { stop: () => request.abort() });
}

// Follows a job until it ends; `tell(job)` is told every change, and `lost(gone)` when the server does not answer, or has
// come back and no longer knows the job. Returns what stops listening.
export function follow(job, tell, lost) {
  const source = new EventSource(`/api/jobs/${job}/events`);
  source.addEventListener("message", (event) => {
    const state = JSON.parse(event.data);
    if (!["waiting", "running"].includes(state.state)) source.close();
    tell(state);
  });
  source.addEventListener("error", () => lost(source.readyState === EventSource.CLOSED));
  return () => source.close();
}
