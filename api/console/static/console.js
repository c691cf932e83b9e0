// The console: one form, three views (ask, search, document), addressed by the hash.
import { answer, documentPage, el, evidence, hits, meant, problem, route, warnings, when } from "./render.js";

const form = document.getElementById("form");
const result = document.getElementById("result");
const freshness = document.getElementById("freshness");
let latest = 0;

function headers() {
  // The server reads the header as UTF-8; fetch takes one character for each byte.
  const groups = String.fromCharCode(...new TextEncoder().encode(form.elements.groups.value.trim()));
  return { "Content-Type": "application/json", ...(groups ? { "X-Shinsen-Groups": groups } : {}) };
}

async function call(path, body) {
  const options = body ? { method: "POST", body: JSON.stringify(body), headers: headers() } : { headers: headers() };
  const response = await fetch(path, options);
  const content = await response.json();
  if (!response.ok) throw content;
  return content;
}

/** Run one view; a slower, older one does not overwrite a newer one. */
async function show(load, draw) {
  const mine = ++latest;
  result.setAttribute("aria-busy", "true");
  let parts;
  try {
    parts = draw(await load());
  } catch (error) {
    const what = error && error.status ? error : { status: "", title: "通信できません Cannot reach the server", detail: String(error) };
    parts = [problem(what)];
  }
  if (mine !== latest) return;
  result.replaceChildren(...parts.filter((part) => part !== null));
  result.setAttribute("aria-busy", "false");
}

function ask(text) {
  const body = { question: text, source: form.elements.source.value, top_k: Number(form.elements.top_k.value) };
  return show(() => call("/v1/query", body), (found) => [meant(found.suggestions, "ask"), answer(found), warnings(found.warnings), route(found), evidence(found)]);
}

function search(text) {
  const body = { query: text, top_k: Number(form.elements.top_k.value) };
  return show(() => call("/v1/search", body), (found) => [meant(found.suggestions, "search"), warnings(found.warnings), hits(found)]);
}

function open(key) {
  return show(() => call("/v1/documents/" + key), (view) => [documentPage(view)]);
}

/** Draw what the address says. */
function go() {
  const hash = location.hash;
  if (hash.startsWith("#evidence-")) {
    document.getElementById(hash.slice(1))?.focus();
    return undefined;
  }
  if (hash.startsWith("#/documents/")) return open(hash.slice("#/documents/".length));
  const match = /^#\/(ask|search)\?(.*)$/.exec(hash);
  if (!match) {
    result.replaceChildren();
    return undefined;
  }
  const text = new URLSearchParams(match[2]).get("q") ?? "";
  form.elements.text.value = text;
  form.elements.mode.value = match[1];
  return match[1] === "ask" ? ask(text) : search(text);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const address = `#/${form.elements.mode.value}?${new URLSearchParams({ q: form.elements.text.value })}`;
  if (address === location.hash) go();
  else location.hash = address;
});
addEventListener("hashchange", go);

/** While a name is typed, offer those like it; older answers do not overwrite newer ones. */
const names = document.getElementById("names");
let typed = 0;
form.elements.text.addEventListener("input", () => {
  const mine = ++typed;
  const text = form.elements.text.value.trim();
  setTimeout(async () => {
    if (mine !== typed) return;
    const short = text.length >= 2 && text.length <= 40;
    try {
      const found = short ? (await call("/v1/suggestions?" + new URLSearchParams({ q: text }))).suggestions : [];
      if (mine === typed) names.replaceChildren(...found.map((one) => el("option", { value: one.text })));
    } catch {
      names.replaceChildren();
    }
  }, 150);
});

async function tell() {
  try {
    const { watermarks: marks } = await call("/v1/freshness");
    const waiting = marks.pending ? `処理待ち pending ${marks.pending}` : "すべて反映済み all indexed";
    freshness.textContent = `${waiting} · ${when(marks.chunks)} 時点`;
  } catch {
    freshness.textContent = "サーバに接続できません offline";
  }
}
tell();
setInterval(tell, 5000);
go();
form.elements.text.focus();
