// The API, from its own description.

import { el } from "/view/dom.js";
import { themeSwitch } from "/view/top.js";

const nameOf = (schema) => schema?.$ref?.split("/").at(-1);

function shape(schema) {
  if (!schema) return "";
  if (schema.$ref) return nameOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const kinds = schema.anyOf ?? schema.oneOf;
  if (kinds) return kinds.map(shape).join(" | ");
  if (schema.type === "array") return `${shape(schema.items)}[]`;
  return schema.type ?? "any";
}

function operation(path, method, about) {
  const sent = Object.entries(about.requestBody?.content ?? {}).map(([kind, { schema }]) => nameOf(schema) ?? kind);
  const given = Object.entries(about.responses).map(([status, { content }]) => {
    const names = Object.values(content ?? {}).map(({ schema }) => shape(schema)).filter(Boolean);
    return `${status}${names.length ? ` ${names.join(", ")}` : ""}`;
  });
  const query = (about.parameters ?? []).filter((one) => one.in === "query").map((one) => one.name);
  return el("li", { class: "panel operation" }, el("p", null, el("code", { class: `method ${method}` }, method.toUpperCase()), " ", el("code", null, path + (query.length ? `?${query.map((one) => `${one}=`).join("&")}` : ""))), el("p", null, about.summary), sent.length ? el("p", { class: "dim small" }, `takes ${sent.join(", ")}`) : null, el("p", { class: "dim small" }, `gives ${given.join(" · ")}`));
}

function model(name, schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([key, one]) => el("tr", null, el("td", null, el("code", null, key)), el("td", null, shape(one)), el("td", { class: "dim" }, one.description ?? "")));
  return el("section", { class: "panel operation" }, el("h3", null, name), schema.description ? el("p", null, schema.description) : null, rows.length ? el("div", { class: "scroll" }, el("table", null, el("tbody", null, rows))) : el("p", null, shape(schema)));
}

document.querySelector(".studio-head").append(el("span", { class: "spring" }), themeSwitch());
const description = await (await fetch("/api/openapi.json")).json();
const operations = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => operation(path, method, about)));
document.getElementById("main").replaceChildren(
  el("h1", null, "The API of the studio"),
  el("p", { class: "dim" }, "What the pages do, programs can do too. The whole description is at ", el("a", { href: "/api/openapi.json" }, "/api/openapi.json"), ". An error is an object with one line, error."),
  el("ul", { class: "operations" }, operations),
  el("h2", null, "What is sent"),
  ...Object.entries(description.components.schemas).map(([name, schema]) => model(name, schema)),
);
