// Builds the parts of the page. Text only ever becomes text nodes: documents are not trusted.

/** Make an element; children are elements, strings, or lists of them; null is left out. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const english = (text) => el("small", { lang: "en" }, text);
export const documentLink = (key) => "#/documents/" + key.split("/").map(encodeURIComponent).join("/");

/** Local time, short. */
export function when(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? String(text) : time.toLocaleString("ja-JP", { dateStyle: "short", timeStyle: "short" });
}

/** Mark spans, given in code points, in a text. */
export function marked(text, spans) {
  const points = Array.from(text);
  const parts = [];
  let done = 0;
  for (const [start, end] of spans) {
    if (start < done) continue;
    parts.push(points.slice(done, start).join(""), el("mark", {}, points.slice(start, end).join("")));
    done = end;
  }
  parts.push(points.slice(done).join(""));
  return parts;
}

function facts(document, more) {
  const stage = document.stage === "text"
    ? el("span", { class: "badge text", title: "ベクトルと事実は準備中 vectors and facts follow" }, "本文のみ text")
    : el("span", { class: "badge" }, "完全 full");
  return el("div", { class: "facts muted" }, el("span", {}, document.key), el("span", {}, document.type),
    el("span", {}, "版 ", english("version"), " " + document.version), el("span", {}, when(document.updated_at)), stage, more);
}

/** A path as a chain: every edge with its direction and the document that states it. */
export function chain(path) {
  if (!path.length) return null;
  const items = [];
  path.forEach((step, n) => {
    const [from, to] = step.direction === "out" ? [step.subject, step.object] : [step.object, step.subject];
    if (n === 0) items.push(el("li", { class: "node" }, from));
    const name = step.label ? `${step.label} ${step.predicate}` : step.predicate;
    const arrow = step.direction === "out" ? `— ${name} →` : `← ${name} —`;
    items.push(el("li", { class: "edge" }, el("a", { href: documentLink(step.document), title: `出典 ${step.document}` }, arrow)));
    items.push(el("li", { class: "node" }, to));
  });
  return el("ol", { class: "path", "aria-label": "経路 Path" }, items);
}

export function answer(response) {
  const { answer: given } = response;
  const box = el("section", { class: given.answerable ? "answer" : "answer none", "aria-label": "回答 Answer" });
  if (!given.claims.length) box.append(el("p", {}, given.text));
  for (const claim of given.claims) {
    const cites = claim.citations.map((n) => el("a", { class: "cite", href: `#evidence-${n}`, "aria-label": `根拠 ${n} Evidence ${n}` }, `[${n}]`));
    box.append(el("p", {}, claim.text, cites));
  }
  return box;
}

export function route(response) {
  const { route: taken, freshness, timings_ms: timings } = response;
  const steps = taken.steps.map((step) => `${step.source}: ${step.outcome} ${step.hits}件 ${step.ms}ms`).join(" / ");
  const names = taken.entities.map((entity) => entity.label).join("、");
  return el("details", {}, el("summary", {}, "経路 ", english("Route"), ` ${taken.strategy} (${taken.by}, ${taken.confidence})`),
    el("p", { class: "muted" }, taken.reason, el("br"), steps, el("br"), names ? `実体 entities: ${names}` : "", el("br"),
      `根拠あり groundedness ${response.answer.groundedness} · ${timings.total} ms · 待ち waited ${freshness.waited_ms} ms`));
}

export function evidence(response) {
  const cited = new Map();
  for (const claim of response.answer.claims) {
    for (const span of claim.spans) cited.set(span.n, [...(cited.get(span.n) ?? []), span.span]);
  }
  const cards = response.evidence.map((piece) => {
    const offset = piece.span ? piece.span[0] : 0;
    const spans = (cited.get(piece.n) ?? []).map(([s, e]) => [s - offset, e - offset]).sort((a, b) => a[0] - b[0]);
    return el("li", { class: "card", id: `evidence-${piece.n}`, tabindex: "-1" },
      el("h3", {}, `[${piece.n}] `, el("a", { href: documentLink(piece.document.key) }, piece.document.title)),
      facts(piece.document, el("span", {}, `${piece.kind} · ${piece.sources.join(" + ")} · ${piece.score}`)),
      chain(piece.path), el("p", {}, marked(piece.text, spans)));
  });
  return el("section", {}, el("h2", {}, "根拠 ", english("Evidence"), ` ${cards.length}`), el("ol", { class: "cards" }, cards));
}

function exactness(parts) {
  if (parts.exact_identifier) return " · 番号一致 exact";
  return parts.named_identifier ? " · 番号の文書 of the numbered document" : "";
}

export function hits(response) {
  const cards = response.hits.map((hit) => el("li", { class: "card" },
    el("h3", {}, el("a", { href: documentLink(hit.document.key) }, hit.document.title)),
    facts(hit.document, el("span", {}, `score ${hit.score}${exactness(hit.parts)}`)),
    el("p", {}, marked(hit.text, hit.highlights))));
  const empty = cards.length ? null : el("p", {}, "見つかりませんでした。 ", english("Nothing found."));
  return el("section", {}, el("h2", {}, "検索結果 ", english("Hits"), ` ${response.total}`), empty, el("ol", { class: "cards" }, cards));
}

/** "Did you mean": names that lead to the same view. */
export function meant(list, mode) {
  if (!list || !list.length) return null;
  const links = list.map((one) => el("a", { href: `#/${mode}?${new URLSearchParams({ q: one.text })}` }, one.text));
  return el("p", { class: "meant" }, "もしかして ", english("Did you mean"), ...links.flatMap((link) => [" ", link]));
}

export function warnings(list) {
  return list.length ? el("ul", { class: "problem" }, list.map((text) => el("li", {}, text))) : null;
}

export function problem(what) {
  const errors = (what.errors ?? []).map((error) => el("li", {}, `${error.pointer} ${error.detail}`));
  return el("section", { class: "problem", role: "alert" }, el("h2", {}, `${what.status} ${what.title}`),
    el("p", {}, what.detail), el("ul", {}, errors), el("p", { class: "muted" }, what.instance ?? ""));
}

const shown = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

function rows(entries) {
  return el("table", {}, el("tbody", {}, entries.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, shown(value))))));
}

export function documentPage(view) {
  const told = view.facts.map((fact) => [`${fact.subject.label} — ${fact.predicate}`, `${fact.object.label} (${fact.method}, ${fact.confidence})`]);
  const allowed = view.acl.allow.map((clause) => clause.join(" | ")).join(" かつ ");
  return el("article", {},
    el("h2", {}, view.document.title), facts(view.document, el("span", {}, `閲覧 ACL: ${allowed}${view.acl.deny.length ? " / 除外 " + view.acl.deny.join(", ") : ""}`)),
    el("h2", {}, "本文 ", english("Body")), el("div", { class: "body" }, view.body),
    el("h2", {}, "項目 ", english("Fields")), rows(Object.entries(view.fields)),
    el("h2", {}, "事実 ", english("Facts"), ` ${told.length}`), rows(told),
    view.record ? el("details", {}, el("summary", {}, "元の記録 ", english("Record")), rows(Object.entries(view.record.columns))) : null);
}
