/* SPDX-License-Identifier: Apache-2.0 */
/* The report's page. `data` is what page.c wrote; texts that came from elsewhere go into text nodes
 * only, through safe (). Long lists are views: only the rows that are seen exist. */
"use strict";
(() => {
const data = JSON.parse (document.getElementById ("data").textContent);
const T = data.texts;
const byId = (id) => document.getElementById (id);

/* ---- what page.c writes, by place ------------------------------------------------------ */
const EXECUTION = ["task", "name", "service", "orphan", "complete", "start_us", "duration_ns", "count", "status",
  "error", "failed", "tree"];
const SUBTASK = ["parent", "name", "service", "vm", "instance", "hop", "start", "duration", "self", "cpu", "sent",
  "answered", "status", "error", "critical", "inside", "pid", "calls", "out", "in", "id", "request", "links"];
const TEXTS = { name: 1, service: 1, vm: 1, instance: 1, error: 1 };
const record = (fields, row) => {
  const made = {};
  fields.forEach ((field, i) => { made[field] = TEXTS[field] ? T[row[i]] : row[i]; });
  return made;
};
const executions = data.executions.map ((row) => record (EXECUTION, row));
const names = data.analysis.names;

/* Orphans are no tasks and not added up; they are listed by what they are, from the executions alone. */
const orphans = [];
for (const e of executions.filter ((each) => each.orphan)) {
  let o = orphans.find ((each) => each.name === e.name && each.service === e.service);
  if (!o) orphans.push (o = { name: e.name, service: e.service, orphan: 1, executions: 0, complete: 0, errors: 0, durations: [], total_ns: 0, rows: [] });
  o.executions++;
  o.complete += e.complete;
  o.errors += e.failed;
  o.total_ns += e.duration_ns;
  o.durations.push (e.duration_ns);
}
for (const o of orphans) {
  o.durations.sort ((a, b) => a - b);
  const at = (percent) => o.durations[Math.max (0, Math.ceil (o.durations.length * percent / 100) - 1)];
  Object.assign (o, { p50_ns: at (50), p90_ns: at (90), p99_ns: at (99), max_ns: at (100) });
}
const listedNames = [...names, ...orphans];

/* ---- texts ----------------------------------------------------------------------------- */

/* Control characters, and what reorders or hides text, are shown for what they are. */
const DANGEROUS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const safe = (text) => String (text).replace (DANGEROUS,
  (c) => "\\u" + c.charCodeAt (0).toString (16).padStart (4, "0"));
const number = (n) => Math.round (n).toLocaleString ("en");
const count = (n, what) => `${number (n)} ${what}${n === 1 ? "" : "s"}`;
const ms = (ns) => {
  const value = ns / 1e6;
  if (!ns) return "0";
  return value >= 99.95 ? number (value) : value.toFixed (value >= 9.95 ? 1 : value >= 0.995 ? 2 : 3);
};
const time = (ns) => (ns >= 1e10 ? (ns / 1e9).toFixed (1) + " s" : ms (ns) + " ms");
const percent = (share) => (share > 0 && share < 0.0095 ? (share * 100).toFixed (1) : Math.floor (share * 100 + 0.5)) + " %";
const date = (us) => {
  const d = new Date (us / 1000), two = (n) => String (n).padStart (2, "0");
  return `${d.getFullYear ()}-${two (d.getMonth () + 1)}-${two (d.getDate ())} ${two (d.getHours ())}:${two (d.getMinutes ())}:` +
    `${two (d.getSeconds ())}.${String (d.getMilliseconds ()).padStart (3, "0")}`;
};
const VM = { jvm: "HotSpot", cpython: "CPython", node: "Node.js", ruby: "Ruby", php: "PHP" };

/* An element: el ("td.num", { title: … }, "text", child, …). */
const el = (what, attributes, ...children) => {
  const [tag, ...classes] = what.split ("."), made = document.createElement (tag || "div");
  if (classes.length) made.className = classes.join (" ");
  return fill (made, attributes, children);
};
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes, ...children) => fill (document.createElementNS (SVG, tag), attributes, children);
const fill = (made, attributes, children) => {
  for (const [key, value] of Object.entries (attributes || {}))
    if (key === "hue") made.style.setProperty ("--hue", value);
    else if (key.startsWith ("on")) made.addEventListener (key.slice (2), value);
    else if (value !== null && value !== undefined) made.setAttribute (key, value);
  for (const child of children)
    if (child !== null && child !== undefined) made.append (child instanceof Node ? child : safe (child));
  return made;
};

/* What is said of a part of a picture when somebody points at it: one line each. */
const tip = (...lines) => { const made = svg ("title"); made.textContent = lines.map (safe).join ("\n"); return made; };

/* Services keep their colour in every part of the page. */
const hues = new Map ();
const hue = (service) => {
  if (!service) return "var(--s7)";
  if (!hues.has (service)) hues.set (service, `var(--s${[0, 1, 2, 3, 4, 5, 6, 8, 9][hues.size % 9]})`);
  return hues.get (service);
};

const state = { name: null, service: null, orphan: 0, key: "count", up: false, list: "duration_ns", listUp: false, range: null, query: "" };

/* ---- views: rows at their place in a space as high as all of them ------------------------ */

class View {
  constructor (box, height, head, make, show) {
    Object.assign (this, { box, height, make, show, count: 0, chosen: -1, pool: [], frame: 0 });
    this.space = el ("div.space", { role: "rowgroup" });
    box.append (fill (el ("div.head"), { role: "row" }, head), this.space);
    this.head = box.firstChild;
    box.addEventListener ("scroll", () => this.draw (), { passive: true });
    new ResizeObserver (() => this.draw (true)).observe (box);
  }
  reset (n) {
    this.count = n;
    this.space.style.height = n * this.height + "px";
    this.box.style.setProperty ("--high", n * this.height + this.head.offsetHeight + 3 + "px");
    this.box.setAttribute ("aria-rowcount", n + 1);
    this.draw (true);
  }
  /* At most once a frame; stale: what is there already is written anew, too. */
  draw (stale) {
    this.stale = this.stale || stale;
    if (!this.frame) this.frame = requestAnimationFrame (() => this.now ());
  }
  now () {
    this.frame = 0;
    const first = Math.floor (this.box.scrollTop / this.height);
    const seen = Math.ceil (this.box.clientHeight / this.height) + 1;
    if (this.before) this.before ();
    while (this.pool.length < seen) {
      const row = this.make ();
      row.index = -1;
      row.setAttribute ("role", "row");
      this.space.append (row);
      this.pool.push (row);
    }
    for (let k = 0; k < this.pool.length; k++) {
      const i = first + k, row = this.pool[i % this.pool.length];
      if (i >= this.count || k >= seen) { row.hidden = true; row.index = -1; continue; }
      if (row.index === i && !this.stale) continue;
      row.index = i;
      row.hidden = false;
      row.id = `${this.box.id}-${i}`;
      row.style.cssText = `top:${i * this.height}px`;
      row.setAttribute ("aria-rowindex", i + 2);
      row.setAttribute ("aria-selected", i === this.chosen);
      this.show (row, i);
    }
    this.stale = false;
    if (this.chosen >= 0 && byId (`${this.box.id}-${this.chosen}`))
      this.box.setAttribute ("aria-activedescendant", `${this.box.id}-${this.chosen}`);
    else
      this.box.removeAttribute ("aria-activedescendant");
  }
  choose (i, quiet) {
    this.chosen = Math.max (-1, Math.min (i, this.count - 1));
    if (this.chosen >= 0 && !quiet) this.reveal (this.chosen);
    this.draw (true);
  }
  reveal (i) {
    const top = i * this.height, room = this.box.clientHeight - this.head.offsetHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.height > this.box.scrollTop + room) this.box.scrollTop = top + this.height - room;
  }
  /* The place that a key of movement means, or null. */
  step (key) {
    const page = Math.max (1, Math.floor (this.box.clientHeight / this.height) - 2);
    const to = { ArrowDown: this.chosen + 1, ArrowUp: this.chosen - 1, PageDown: this.chosen + page, PageUp: this.chosen - page,
      Home: 0, End: this.count - 1 }[key];
    return to === undefined ? null : Math.max (0, Math.min (to, this.count - 1));
  }
}

/* ---- head -------------------------------------------------------------------------------- */

function showHead () {
  const asked = executions.find ((e) => e.task === data.task);
  const title = asked ? asked.name : names.length === 1 ? names[0].name : count (names.length, "task name");
  byId ("title").textContent = safe (title);
  document.title = safe (title) + " · weft report";
  const a = data.analysis;
  byId ("scope").textContent = safe ([`${count (a.executions, "execution")}`, data.scope, data.from_us ? `since ${date (data.from_us)}` : "",
    `written ${date (data.made_us)} by weft ${data.version}`].filter (Boolean).join (" · "));
  const lost = Object.entries (a.losses).filter (([, n]) => n);
  const known = [`complete ${number (a.complete)} of ${number (a.executions)}`,
    a.orphans.length ? `orphans ${number (a.orphan_trees)}: ` + a.orphans.slice (0, 4).map ((o) => `${o.service} ${number (o.count)} (${o.text})`).join (", ")
      : `orphans ${number (a.orphan_trees)}`,
    "lost " + (lost.length ? lost.map (([cause, n]) => `${number (n)} (${cause.replace (/_/g, " ")})`).join (", ") : "0"),
    a.tails_unknown ? `tails unknown in ${count (a.tails_unknown, "instance")}` : "",
    a.truncated ? `${count (a.truncated, "subtask")} left out` : "",
    a.hops.embed_only + a.hops.capture_only ? `one-sided requests ${number (a.hops.embed_only + a.hops.capture_only)} of ` +
      number (a.hops.proven + a.hops.embed_only + a.hops.capture_only) : "all requests proven"];
  const seen = (data.instances || []).filter ((i) => i.bytes_total)
    .map ((i) => `${i.service} ${percent (i.bytes_spoken / i.bytes_total)}`);
  if (seen.length) known.push ("visible traffic " + [...new Set (seen)].slice (0, 8).join (", "));
  if (data.more) known.push (`listed: the newest ${number (executions.length)}`);
  byId ("known").textContent = safe (known.filter (Boolean).join (" · "));
}

/* One text a name, sentence after sentence. */
function showWhy () {
  const text = data.sentences && chosenName () ? data.sentences[names.indexOf (chosenName ())] : "";
  byId ("why").hidden = !text;
  byId ("why-text").replaceChildren (...text.split (/(?<=\.) (?=[A-Z])/).map ((line) => el ("p", null, line)));
}

/* ---- tasks --------------------------------------------------------------------------------- */

const sum = (n) => n.total_ns;
const COLUMNS = [["Task", "name", (n) => n.name, 0], ["Service", "service", (n) => n.service, 0],
  ["Executions", "count", (n) => n.executions, 1, number], ["p50 ms", "p50", (n) => n.p50_ns, 1, ms],
  ["p90 ms", "p90", (n) => n.p90_ns, 1, ms], ["p99 ms", "p99", (n) => n.p99_ns, 1, ms],
  ["max ms", "max", (n) => n.max_ns, 1, ms], ["Total ms", "total", sum, 1, ms],
  ["Errors", "errors", (n) => n.errors, 1, number], ["Complete", "complete", (n) => n.complete / n.executions, 1, percent]];

function showNames () {
  const column = COLUMNS.find ((c) => c[1] === state.key), way = state.up ? 1 : -1;
  const query = state.query.toLowerCase ();
  const order = listedNames.map ((n, i) => i)
    .filter ((i) => !query || has (listedNames[i].name, query) || has (listedNames[i].service, query) || searchable (listedNames[i], query))
    .sort ((a, b) => { const x = column[2] (listedNames[a]), y = column[2] (listedNames[b]); return (x < y ? -way : x > y ? way : a - b); });
  const table = byId ("names");
  table.tHead.replaceChildren (el ("tr", null, ...COLUMNS.map (([title, key, , num]) =>
    el (num ? "th.num" : "th", { scope: "col", "aria-sort": key === state.key ? (state.up ? "ascending" : "descending") : null },
      el ("button", { type: "button", onclick: () => { state.up = state.key === key ? !state.up : !num; state.key = key; showNames (); focusHead (key); }, "data-key": key }, title)))));
  table.tBodies[0].replaceChildren (...order.map ((i) => {
    const n = listedNames[i], go = () => chooseName (n.name, n.service, n.orphan || 0);
    return el ("tr", { tabindex: 0, "aria-selected": isOf (state, n.name, n.service, n.orphan || 0), onclick: go,
      onkeydown: (event) => rowKey (event, go) }, ...COLUMNS.map (([, key, value, num, print]) => {
      const cell = el (num ? "td.num" : "td.text", { title: num ? null : safe (value (n)) });
      if (key === "service") cell.append (el ("span.dot", { hue: hue (n.service) }));
      if (key === "name" && n.orphan) cell.append (el ("span.quiet", null, "orphan "));
      if (key === "errors" && n.errors) cell.classList.add ("bad");
      cell.append (el ("bdi", null, print ? print (value (n)) : value (n)));
      return cell;
    }));
  }));
}
const focusHead = (key) => byId ("names").querySelector (`[data-key="${key}"]`).focus ();
const rowKey = (event, go) => {
  const row = event.currentTarget, to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (event.key === "Enter" || event.key === " ") go ();
  else if (to) to.focus ();
  else return;
  event.preventDefault ();
};
const has = (text, query) => text.toLowerCase ().includes (query);
/* A name is of interest as well where something in one of its executions is searched for. */
const searchable = (n, query) => n.rows.some ((row) => has (row.name, query) || has (row.service, query)) ||
  (/^[0-9a-f]{4,}$/.test (query) && executions.some ((e) => isOf (e, n.name, n.service, n.orphan || 0) && e.task.startsWith (query)));

function chooseName (name, service, orphan) {
  Object.assign (state, { name, service, orphan, range: null });
  showNames ();
  showWhy ();
  showSpread ();
  showRows ();
  showMap ();
  showList ();
}
const chosenName = () => (state.orphan ? null : names.find ((n) => n.name === state.name && n.service === state.service));
const isOf = (e, name, service, orphan) => e.name === name && e.service === service && e.orphan === orphan;
const ofName = () => executions.filter ((e) => isOf (e, state.name, state.service, state.orphan));

/* ---- how long ---------------------------------------------------------------------------- */

const nice = (most) => { /* 1, 2, 5 times a power of ten, not above it */
  const power = 10 ** Math.floor (Math.log10 (most));
  return power * (most / power >= 5 ? 5 : most / power >= 2 ? 2 : 1);
};

function showSpread () {
  const box = byId ("spread"), all = ofName ().map ((e) => e.duration_ns).filter ((ns) => ns > 0), name = chosenName ();
  if (!all.length) { box.replaceChildren (el ("p.quiet", null, "No execution is listed.")); return; }
  const width = Math.max (280, box.clientWidth), high = 170, low = 138, left = 36;
  const least = all.reduce ((a, b) => Math.min (a, b)), most = Math.max (all.reduce ((a, b) => Math.max (a, b)), least * 1.2);
  const x0 = Math.log (least * 0.98), x1 = Math.log (most * 1.02), bins = Math.max (8, Math.min (48, Math.floor ((width - left) / 10)));
  const x = (ns) => left + (Math.log (ns) - x0) / (x1 - x0) * (width - left - 8);
  const full = new Array (bins).fill (0);
  for (const ns of all) full[Math.min (bins - 1, Math.floor ((Math.log (ns) - x0) / (x1 - x0) * bins))]++;
  const tall = Math.max (...full), y = (n) => low - (n ? Math.max (2, n / tall * (low - 26)) : 0);
  const edge = (i) => Math.exp (x0 + (x1 - x0) * i / bins);
  const picture = svg ("svg", { width, height: high, role: "img", "aria-label": `${count (all.length, "duration")} from ${time (least)} to ${time (most)}` });
  full.forEach ((n, i) => {
    if (!n) return;
    const from = edge (i), to = edge (i + 1), on = !state.range || (from < state.range[1] && to > state.range[0]);
    const pick = () => { state.range = state.range && state.range[0] === from ? null : [from, to]; showSpread (); showList (); };
    picture.append (svg ("rect", { class: on ? "bin" : "bin off", x: x (from) + 0.5, y: y (n), width: Math.max (1, x (to) - x (from) - 1), height: low - y (n),
      onclick: pick }, tip (`${count (n, "execution")}, ${time (from)} to ${time (to)}`)));
  });
  picture.append (svg ("line", { class: "axis", x1: left, x2: width - 8, y1: low + 0.5, y2: low + 0.5 }),
    svg ("text", { class: "quiet", x: left - 6, y: 32, "text-anchor": "end" }, number (tall)));
  let until = 0;
  for (let power = Math.floor (Math.log10 (least)); power <= Math.log10 (most); power++)
    for (const digit of [1, 2, 5]) {
      const at = digit * 10 ** power;
      if (at < least || at > most || x (at) < until || x (at) > width - 30) continue;
      picture.append (svg ("line", { class: "axis", x1: x (at), x2: x (at), y1: low, y2: low + 4 }),
        svg ("text", { class: "quiet", x: x (at), y: low + 17, "text-anchor": "middle" }, time (at)));
      until = x (at) + 56;
    }
  let before = -100;
  for (const [label, ns] of name ? [["p50", name.p50_ns], ["p90", name.p90_ns], ["p99", name.p99_ns]] : []) {
    if (!ns || ns < least * 0.98 || ns > most * 1.02) continue;
    const row = x (ns) - before < 30 ? 20 : 10;
    picture.append (svg ("line", { class: "mark", x1: x (ns), x2: x (ns), y1: row + 3, y2: low }),
      svg ("text", { class: "quiet", x: x (ns), y: row, "text-anchor": x (ns) > width - 24 ? "end" : "middle" }, label));
    before = row === 10 ? x (ns) : before;
  }
  box.replaceChildren (picture);
}

/* ---- where the time goes --------------------------------------------------------------------- */

function showRows () {
  const table = byId ("rows"), name = chosenName (), rows = name ? name.rows.slice (0, 200) : [];
  const heads = ["Service", "", "Calls", "Self ms", "Share"];
  table.tHead.replaceChildren (el ("tr", null, ...heads.map ((title, i) => el (i === 2 || i === 3 ? "th.num" : "th", { scope: "col" }, title))));
  const line = (service, what, deep, calls, self, share, leaf) => el ("tr", null,
    el ("td.text", null, service ? el ("span.dot", { hue: hue (leaf ? "" : service) }) : null, el ("bdi", null, service)),
    el ("td.text", { title: safe (what) }, indent (deep), el ("bdi", null, what)),
    el ("td.num", null, calls === null ? "" : Math.abs (calls - Math.round (calls)) < 0.05 ? number (calls) : calls.toFixed (1)),
    el ("td.num", null, ms (self)), el ("td", null, bar (share, leaf ? "" : service), " " + percent (share)));
  const lines = rows.map ((row) => line (row.service, row.name + (row.hop === "opaque" ? " (opaque)" : ""), row.depth, row.calls, row.self_ns, row.share, isLeaf (row)));
  if (name && name.network_ns) lines.push (line ("", "network", 0, null, name.network_ns, name.mean_ns ? name.network_ns / name.mean_ns : 0));
  if (name && name.rows.length > rows.length) lines.push (el ("tr", null, el ("td", { colspan: 5 }, `${number (name.rows.length - rows.length)} more`)));
  if (!lines.length) lines.push (el ("tr", null, el ("td.quiet", { colspan: 5 }, "Orphans are not added up.")));
  table.tBodies[0].replaceChildren (...lines);
}
const isLeaf = (row) => row.hop === "opaque" || row.hop === "embed_only";
const indent = (deep) => { const made = el ("span"); made.style.paddingLeft = Math.min (deep, 12) * 14 + "px"; return made; };
const bar = (share, service) => { const made = el ("span.share", { hue: hue (service) }); made.style.width = Math.min (1, share) * 80 + "px"; return made; };

/* ---- who calls whom ---------------------------------------------------------------------------- */

const NODES_MAX = 40;
const OUTSIDE = "outside";

/* Edges between services; what is called by several names is one. */
function edgesOf (name) {
  const made = new Map ();
  const add = (from, to, edge) => {
    const key = JSON.stringify ([from, to]), known = made.get (key);
    if (!known) made.set (key, { from, to, calls: edge.calls, errors: edge.errors, p50: edge.p50_ns, p99: edge.p99_ns, hop: edge.hop, names: [edge] });
    else { known.calls += edge.calls; known.errors += edge.errors; known.p99 = Math.max (known.p99, edge.p99_ns); known.names.push (edge); }
  };
  for (const edge of name.edges || [])
    if (edge.from_service !== "" || edge.from_name !== "")
      add (edge.from_service, edge.hop === "opaque" ? `${edge.name} ${edge.service}`.trim () : edge.service || OUTSIDE, edge);
  return [...made.values ()].sort ((a, b) => b.calls - a.calls);
}

/* Columns: as far right as the longest way there, circles cut where the walk meets itself. */
function layers (nodes, edges) {
  const depth = new Map (), open = new Set ();
  const visit = (node, at) => {
    if (open.has (node) || (depth.has (node) && depth.get (node) >= at)) return;
    depth.set (node, at);
    open.add (node);
    for (const edge of edges) if (edge.from === node) visit (edge.to, at + 1);
    open.delete (node);
  };
  const called = new Set (edges.filter ((e) => e.from !== e.to).map ((e) => e.to));
  for (const node of nodes) if (!called.has (node)) visit (node, 0);
  for (const node of nodes) if (!depth.has (node)) visit (node, 0);
  return depth;
}

/* The point of a cubic curve that runs from left to right where it passes `x`. */
function onCurve (x, xs, ys) {
  const at = (p, t) => (1 - t) ** 3 * p[0] + 3 * (1 - t) ** 2 * t * p[1] + 3 * (1 - t) * t ** 2 * p[2] + t ** 3 * p[3];
  let low = 0, high = 1;
  for (let n = 0; n < 20; n++) if (at (xs, (low + high) / 2) < x) low = (low + high) / 2; else high = (low + high) / 2;
  return [x, at (ys, low)];
}

function showMap () {
  const box = byId ("map"), name = chosenName ();
  let edges = name ? edgesOf (name) : [];
  const self = new Map (), leaves = new Map (edges.filter (isLeaf).map ((e) => [e.to, e.hop === "opaque" ? "opaque" : "outside"]));
  let nodes = name ? [...new Set ([name.service, ...edges.flatMap ((e) => [e.from, e.to])])] : [];
  const more = nodes.length - NODES_MAX;
  if (more > 0) { nodes = nodes.slice (0, NODES_MAX); edges = edges.filter ((e) => nodes.includes (e.from) && nodes.includes (e.to)); }
  if (!nodes.length) { box.replaceChildren (el ("p.quiet", null, "Nothing to draw.")); return; }
  for (const row of name.rows) self.set (row.service, (self.get (row.service) || 0) + row.self_ns);
  const depth = layers (nodes, edges), columns = [];
  for (const node of nodes) (columns[depth.get (node)] = columns[depth.get (node)] || []).push (node);
  const tall = Math.max (...columns.map ((c) => (c || []).length)), wide = 168, deep = 40, gapY = 30;
  const gapX = Math.max (150, Math.min (220, (box.clientWidth - 12 - columns.length * wide) / Math.max (1, columns.length - 1)));
  const height = tall * (deep + gapY) + 12, place = new Map ();
  columns.forEach ((column, x) => (column || []).forEach ((node, i) =>
    place.set (node, { x: 4 + x * (wide + gapX), y: (height - column.length * (deep + gapY) + gapY) / 2 + i * (deep + gapY) })));
  const width = columns.length * (wide + gapX) - gapX + 12;
  const picture = svg ("svg", { width, height, role: "img", "aria-label": `${count (nodes.length, "service")} and peers, ${count (edges.length, "edge")}` },
    svg ("defs", null, svg ("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" },
      svg ("path", { class: "head", d: "M0 0L8 4L0 8z" }))));
  const most = Math.max (1, ...edges.map ((e) => e.calls)), labels = [];
  for (const edge of edges) {
    const a = place.get (edge.from), b = place.get (edge.to), thick = 1 + 3 * Math.sqrt (edge.calls / most);
    const onward = b.x > a.x, x1 = a.x + wide, x2 = b.x, y1 = a.y + deep / 2, y2 = b.y + deep / 2, bend = gapX * 0.45;
    const path = onward ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
      : `M${a.x + wide / 2 + 20} ${a.y}C${a.x + wide / 2 + 20} ${a.y - 26} ${b.x + wide / 2 - 20} ${b.y - 26} ${b.x + wide / 2 - 20} ${b.y}`;
    const said = [`${edge.from} → ${edge.to}`, ...edge.names.slice (0, 12).map ((n) => `${n.name}: ${count (n.calls, "call")}, p50 ${time (n.p50_ns)}, ` +
      `p99 ${time (n.p99_ns)}` + (n.errors ? `, ${count (n.errors, "error")}` : ""))];
    picture.append (svg ("path", { class: edge.errors ? "edge bad" : "edge", d: path, "stroke-width": thick, "marker-end": "url(#head)" }, tip (...said)));
    const middle = onward ? onCurve (x2 - gapX * 0.45, [x1, x1 + bend, x2 - bend, x2], [y1, y1, y2, y2]) : [(a.x + b.x + wide) / 2, Math.min (a.y, b.y) - 24];
    labels.push (svg ("text", { class: "quiet label", x: middle[0], y: middle[1] - 4, "text-anchor": "middle" }, tip (...said),
      `${number (edge.calls)} × ${edge.names.length === 1 ? time (edge.p50) : "≤ " + time (edge.p99)}`,
      edge.errors ? svg ("tspan", { class: "bad" }, ` · ${count (edge.errors, "error")}`) : null));
  }
  for (const node of nodes) {
    const at = place.get (node), colour = hue (leaves.has (node) ? "" : node);
    picture.append (svg ("g", { hue: colour }, tip (node),
      svg ("rect", { class: "node", x: at.x, y: at.y, width: wide, height: deep, rx: 6, "stroke-dasharray": leaves.has (node) ? "4 3" : null }),
      svg ("text", { x: at.x + 10, y: at.y + 17 }, cut (node, 24)),
      svg ("text", { class: "quiet", x: at.x + 10, y: at.y + 32 }, leaves.has (node) ? leaves.get (node) : self.has (node) ? `self ${time (self.get (node))}` : "")));
  }
  picture.append (...labels);
  box.replaceChildren (picture);
  if (more > 0) box.append (el ("p.quiet", null, `${count (more, "further service")} and peers are not drawn.`));
  if (name.more_edges) box.append (el ("p.quiet", null, `${count (name.more_edges, "call")} of further kinds are not told apart.`));
}
const cut = (text, most) => { const shown = safe (text); return shown.length > most ? shown.slice (0, most - 1) + "…" : shown; };

/* ---- executions ----------------------------------------------------------------------------------- */

let listed = [];
const LIST = [["Start", "start_us"], ["Duration ms", "duration_ns"], ["", null], ["Subtasks", "count"], ["Answer", "status"], ["Task", "task"]];
const list = new View (byId ("list"), 24, LIST.map (([title, key]) => el (key === "duration_ns" || key === "count" ? "span.num" : "span", { role: "columnheader" },
  key ? el ("button", { type: "button", tabindex: 0, "data-key": key, onclick: () => { state.listUp = state.list === key ? !state.listUp : false; state.list = key; showList (); } }, title) : "")),
() => {
  const row = el ("div.row", { onclick: () => openAt (row.index) });
  for (let i = 0; i < LIST.length; i++) row.append (el (i === 1 || i === 3 ? "span.num" : i === 5 ? "span.mono" : "span", { role: "gridcell" }));
  row.children[2].append (el ("span.share"));
  return row;
},
(row, i) => {
  const e = listed[i], cells = row.children;
  row.classList.toggle ("bare", e.tree < 0);
  row.title = e.tree < 0 ? `its tree is not in this page: weft show ${e.task.slice (0, 12)}` : "";
  cells[0].textContent = date (e.start_us);
  cells[1].textContent = ms (e.duration_ns);
  cells[2].firstChild.style.cssText = `--hue:${hue (e.service)};width:${100 * e.duration_ns / list.most}%`;
  cells[3].textContent = number (e.count);
  cells[4].textContent = [e.error || e.status || "", e.complete || e.orphan ? "" : "incomplete", e.orphan ? "orphan" : ""].filter (Boolean).join (" ");
  cells[4].classList.toggle ("bad", Boolean (e.failed));
  cells[5].textContent = e.task;
});

function showList () {
  const query = state.query.toLowerCase (), key = state.list, way = state.listUp ? 1 : -1;
  const byTask = /^[0-9a-f]{4,32}$/.test (query);
  listed = ofName ().filter ((e) => (!state.range || (e.duration_ns >= state.range[0] && e.duration_ns < state.range[1])) && (!byTask || e.task.startsWith (query) || !ofName ().some ((o) => o.task.startsWith (query))))
    .sort ((a, b) => (a[key] < b[key] ? -way : a[key] > b[key] ? way : a.task < b.task ? -1 : 1));
  list.most = listed.reduce ((most, e) => Math.max (most, e.duration_ns), 1);
  byId ("list-note").textContent = `${number (listed.length)}${state.range ? ` from ${time (state.range[0])} to ${time (state.range[1])}` : ""} · ${number (listed.filter ((e) => e.tree >= 0).length)} with their tree`;
  const open = listed.findIndex ((e) => fall.execution && e.task === fall.execution.task);
  list.box.scrollTop = 0;
  list.reset (listed.length);
  if (open >= 0) list.choose (open);
  else openAt (listed.findIndex ((e) => e.tree >= 0));
}
function openAt (i) {
  list.choose (i);
  if (i >= 0 && listed[i].tree >= 0) openTree (listed[i]);
}
list.box.addEventListener ("keydown", (event) => {
  const to = list.step (event.key);
  if (to === null || event.target !== list.box) return;
  event.preventDefault ();
  openAt (to);
});
/* ---- waterfall -------------------------------------------------------------------------------------- */

const SIMILAR_MAX = 5, SHOWN_OF_MANY = 2, LEVELS_MAX = 20, INDENT = 13;

const fall = new View (byId ("fall"), 24, [el ("span", { role: "columnheader" }, "Subtask"), el ("span.track", { role: "columnheader" }),
  el ("span.num", { role: "columnheader" }, "ms"), el ("span.num", { role: "columnheader" }, "self ms"), el ("span", { role: "columnheader" })],
() => fill (el ("div.row", { onclick: (event) => pick (event) }), null,
  [el ("span", { role: "gridcell" }, el ("span.fork"), el ("span.dot"), el ("bdi.who"), el ("bdi.what")),
    el ("span.track", { role: "gridcell" }, el ("span.span")), el ("span.num", { role: "gridcell" }), el ("span.num", { role: "gridcell" }), el ("span", { role: "gridcell" })]),
showSubtask);
Object.assign (fall, { execution: null, subtasks: [], rows: [], from: 0, to: 1, whole: 1, matches: [], match: -1 });

/* Depths, ends of subtrees (a parent stands before its children), and groups of like siblings: of a
 * group of more than SIMILAR_MAX the first SHOWN_OF_MANY stand, and one row for the others. */
function grow (rows) {
  const all = rows.map ((row) => record (SUBTASK, row)), groups = [];
  all.forEach ((s, i) => {
    s.depth = s.parent < 0 ? 0 : all[s.parent].depth + 1;
    s.end = i + 1;
    s.closed = false;
    s.children = 0;
    if (s.parent >= 0) all[s.parent].children++;
  });
  for (let i = all.length - 1; i >= 0; i--) if (all[i].parent >= 0) all[all[i].parent].end = Math.max (all[all[i].parent].end, all[i].end);
  const group = new Map ();
  all.forEach ((s, i) => {
    const key = JSON.stringify ([s.parent, s.hop, s.name, s.service, s.hop === "opaque" ? s.error : ""]);
    let g = group.get (key);
    if (!g) { g = { members: [], open: false, duration: 0, self: 0, critical: 0, bad: 0, from: s.start, to: s.start }; group.set (key, g); groups.push (g); }
    s.group = g;
    s.ordinal = g.members.length;
    g.members.push (i);
    if (s.ordinal < SHOWN_OF_MANY) return;
    g.duration += s.duration;
    g.self += s.self;
    g.critical |= s.critical;
    g.bad += isBad (s) ? 1 : 0;
    g.from = s.ordinal === SHOWN_OF_MANY ? s.start : Math.min (g.from, s.start);
    g.to = Math.max (g.to, s.start + s.duration);
  });
  for (const g of groups) g.folds = g.members.length > SIMILAR_MAX;
  fall.groups = groups;
  return all;
}
const isBad = (s) => s.error || s.status >= 500;

/* What is seen: subtasks by their number, ~number for the row that stands for the others of its group. */
function rebuild (keep) {
  const all = fall.subtasks, rows = [];
  for (let i = 0; i < all.length;) {
    const s = all[i], hidden = s.group.folds && !s.group.open && s.ordinal >= SHOWN_OF_MANY;
    if (hidden && s.ordinal === SHOWN_OF_MANY) rows.push (~i);
    else if (!hidden) rows.push (i);
    i = hidden || s.closed ? s.end : i + 1;
  }
  fall.rows = rows;
  fall.place = new Map (rows.map ((row, at) => [row, at]));
  fall.reset (rows.length);
  const at = fall.place.get (keep);
  fall.choose (at === undefined ? Math.min (fall.chosen, rows.length - 1) : at);
  byId ("fold").textContent = all.some ((s) => s.closed) || fall.groups.some ((g) => g.folds && !g.open) ? "Unfold all" : "Fold";
}

function openTree (execution) {
  if (fall.execution === execution) return;
  const tree = data.trees[execution.tree], all = grow (tree.subtasks);
  Object.assign (fall, { execution, tree, subtasks: all, chosen: -1, match: -1 });
  fall.whole = all.reduce ((most, s) => Math.max (most, s.start + s.duration), execution.duration_ns) || 1;
  byId ("fall-head").replaceChildren (el ("bdi", null, execution.name), ` ${time (execution.duration_ns)}`);
  const hops = (hop) => all.filter ((s) => s.hop === hop);
  const missing = hops ("embed_only").filter ((s) => s.inside).length, unseen = hops ("capture_only").filter ((s) => s.parent >= 0 || s !== all[0]).length;
  byId ("fall-note").textContent = safe ([execution.task.slice (0, 12), date (execution.start_us),
    execution.orphan ? `orphan from unknown in service ${T[tree.origin]}: ${T[tree.reason]}` : execution.complete ? "complete" : "incomplete",
    count (all.length, "subtask"), tree.left_out ? `${number (tree.left_out)} left out` : "",
    missing ? `${number (missing)} not captured` : "", unseen ? `${number (unseen)} from a caller not seen` : "",
    tree.hosts > 1 ? `clock: ${tree.hosts} hosts, ${tree.aligned ? "aligned ± " + time (tree.uncertainty_ns) : "raw"}` : "clock: one host"].filter (Boolean).join (" · "));
  fall.box.scrollTop = 0;
  zoomTo (0, fall.whole);
  rebuild (0);
  search (false);
  showOverview ();
}

/* ---- its rows */

function showSubtask (row, i) {
  const at = fall.rows[i], group = at < 0, s = fall.subtasks[group ? ~at : at], cells = row.children, g = s.group;
  const colour = hue (isLeaf (s) ? "" : s.service), closed = s.closed || group;
  const [fork, dot, who, what] = cells[0].children, critical = group ? g.critical : s.critical;
  row.className = "row" + (critical ? " critical" : "") + (group ? " fold" : s.hop === "opaque" ? " opaque" : "");
  row.style.setProperty ("--hue", colour);
  row.setAttribute ("aria-level", s.depth + 1);
  if (group || s.children) row.setAttribute ("aria-expanded", !closed);
  else row.removeAttribute ("aria-expanded");
  cells[0].style.paddingLeft = 4 + Math.min (s.depth, LEVELS_MAX) * INDENT + "px";
  fork.textContent = group || s.children ? (closed ? "▸" : "▾") : "";
  dot.hidden = group;
  who.textContent = group ? "" : safe (s.hop === "opaque" ? "" : s.service);
  what.textContent = group ? `${number (g.members.length - SHOWN_OF_MANY)} more like it` + (g.bad ? `, ${number (g.bad)} failed` : "")
    : safe (s.hop === "opaque" ? `${s.name} ${s.service}` : s.name) + (s.calls > 1 ? ` × ${number (s.calls)}` : "") + (s.depth > LEVELS_MAX ? `  (level ${number (s.depth)})` : "");
  what.classList.toggle ("match", !group && s.match === fall.query && fall.query !== "");
  cells[0].title = group ? "" : safe (`${s.service} ${s.name}`);
  place (cells[1].firstChild, group ? g.from : s.start, group ? g.to : s.start + s.duration);
  cells[2].textContent = ms (group ? g.duration : s.hop === "opaque" ? s.self : s.duration);
  cells[3].textContent = s.hop === "opaque" ? "" : ms (group ? g.self : s.self);
  cells[4].textContent = (critical ? "◀ " : "") + (group ? "" : s.error || (s.status >= 500 ? `status ${s.status}` : s.hop === "opaque" ? "opaque"
    : s.hop === "embed_only" ? (s.inside ? "not captured" : "outside") : s.hop === "capture_only" && at ? "caller not seen" : ""));
  cells[4].className = (group ? g.bad : isBad (s)) ? "bad" : critical ? "mark-critical" : "quiet";
}

function place (span, from, to) {
  const wide = fall.to - fall.from, left = Math.max (-0.01, (from - fall.from) / wide), right = Math.min (1.01, (to - fall.from) / wide);
  span.hidden = right < 0 || left > 1;
  span.style.left = left * 100 + "%";
  span.style.width = Math.max (0, right - left) * 100 + "%";
}

/* Ticks at round times; the rows' grid stands under them. */
fall.before = () => {
  const track = fall.head.children[1], width = track.clientWidth, span = fall.to - fall.from;
  if (!fall.stale || !width) return;
  const step = Math.max (1, nice (span / Math.max (1, width / 150))), ticks = [];
  for (let n = Math.ceil (fall.from / step); (n * step - fall.from) / span * width < width - 48; n++) {
    const tick = el ("span.tick", null, time (n * step));
    tick.style.left = (n * step - fall.from) / span * 100 + "%";
    ticks.push (tick);
  }
  track.replaceChildren (...ticks);
  fall.box.style.setProperty ("--step", step / span * width + "px");
  fall.box.style.setProperty ("--shift", (Math.ceil (fall.from / step) * step - fall.from) / span * width + "px");
};

/* ---- zoom */

const LEAST_NS = 1000;
function zoomTo (from, to) {
  const wide = Math.max (LEAST_NS, Math.min (to - from, fall.whole)), middle = (from + to) / 2;
  fall.from = Math.max (0, Math.min (middle - wide / 2, fall.whole - wide));
  fall.to = fall.from + wide;
  const brush = byId ("brush");
  brush.hidden = wide >= fall.whole;
  brush.style.left = 100 * fall.from / fall.whole + "%";
  brush.style.width = 100 * wide / fall.whole + "%";
  fall.draw (true);
}
function zoom (factor, at) {
  const s = chosenSubtask (), inside = s && s.start < fall.to && s.start + s.duration > fall.from;
  const centre = at !== undefined ? at : inside ? Math.min (fall.to, Math.max (fall.from, s.start + s.duration / 2)) : (fall.from + fall.to) / 2;
  zoomTo (centre - (centre - fall.from) / factor, centre + (fall.to - centre) / factor);
}
const pan = (share) => { const by = (fall.to - fall.from) * share, to = Math.max (-fall.from, Math.min (by, fall.whole - fall.to)); zoomTo (fall.from + to, fall.to + to); };
const chosenSubtask = () => { const at = fall.rows[fall.chosen]; return at === undefined ? null : fall.subtasks[at < 0 ? ~at : at]; };

fall.box.addEventListener ("wheel", (event) => {
  const track = fall.head.children[1].getBoundingClientRect ();
  if (event.ctrlKey || event.metaKey) {
    const share = Math.max (0, Math.min (1, (event.clientX - track.left) / track.width));
    zoom (Math.exp (-event.deltaY / 300), fall.from + share * (fall.to - fall.from));
  } else if (event.shiftKey || Math.abs (event.deltaX) > Math.abs (event.deltaY)) pan ((event.deltaX || event.deltaY) / track.width);
  else return;
  event.preventDefault ();
}, { passive: false });

/* Dragging over the time line or the overview chooses what is seen. */
function draggable (box, range) {
  box.addEventListener ("pointerdown", (event) => {
    const place = box.getBoundingClientRect (), [from, to] = range ();
    const ns = (x) => from + Math.max (0, Math.min (1, (x - place.left) / place.width)) * (to - from);
    const start = event.clientX;
    const end = (up) => {
      box.removeEventListener ("pointerup", end);
      box.removeEventListener ("pointercancel", end);
      if (up.type === "pointerup" && Math.abs (up.clientX - start) > 3) zoomTo (Math.min (ns (start), ns (up.clientX)), Math.max (ns (start), ns (up.clientX)));
    };
    box.setPointerCapture (event.pointerId);
    box.addEventListener ("pointerup", end);
    box.addEventListener ("pointercancel", end);
  });
  box.addEventListener ("dblclick", () => zoomTo (0, fall.whole));
}

function showOverview () {
  const canvas = byId ("over").firstChild, scale = window.devicePixelRatio || 1, width = canvas.clientWidth, high = canvas.clientHeight;
  const style = getComputedStyle (document.documentElement), colours = new Map (), all = fall.subtasks;
  canvas.width = width * scale;
  canvas.height = high * scale;
  const pen = canvas.getContext ("2d");
  pen.scale (scale, scale);
  const deepest = all.reduce ((most, s) => Math.max (most, s.depth), 0) + 1, line = Math.max (1, Math.min (7, (high - 4) / Math.min (deepest, 40)));
  for (const s of all) {
    const name = hue (isLeaf (s) ? "" : s.service).slice (4, -1);
    if (!colours.has (name)) colours.set (name, style.getPropertyValue (name));
    pen.fillStyle = colours.get (name);
    pen.fillRect (s.start / fall.whole * width, 2 + (s.depth % 40) * line, Math.max (1, s.duration / fall.whole * width), Math.max (1, line - 1));
  }
}

/* ---- choosing, folding */

function pick (event) {
  const i = event.currentTarget.index, fork = event.target.classList.contains ("fork");
  choose (i);
  if (fork || fall.rows[i] < 0) toggle ();
}
function choose (i) {
  fall.choose (i);
  const s = chosenSubtask (), at = fall.rows[fall.chosen];
  if (!s || at < 0) { byId ("detail").replaceChildren (); return; }
  const wire = s.sent >= 0 && s.answered >= 0 ? (s.answered - s.sent) - s.duration : -1;
  const facts = [["subtask", s.id], ["request", /^0+$/.test (s.request) ? "" : s.request], ["service", s.service], ["name", s.name],
    ["VM", [VM[s.vm] || s.vm, s.pid ? `pid ${s.pid}` : ""].filter (Boolean).join (", ")], ["instance", s.instance],
    ["starts at", `+ ${time (s.start)}`], ["takes", time (s.duration)], ["self", time (s.self)], ["CPU", s.cpu < 0 ? "not known" : time (s.cpu)],
    ["network", wire >= 0 ? time (wire) : ""], ["answer", s.error || s.status || ""], ["known by", s.hop.replace ("_", " ")],
    ["calls", s.calls ? number (s.calls) : ""], ["bytes", s.calls ? `${number (s.out)} out, ${number (s.in)} in` : ""]];
  byId ("detail").replaceChildren (fill (el ("dl"), null, [...facts.filter (([, value]) => value !== "").map (([what, value]) =>
    el ("div", null, el ("dt", null, what), el ("dd", null, el ("bdi", null, value)))), ...(s.links || []).map (linked)]));
}
/* One that the tree does not join to it; where it is in the tree, a way there. */
const LINK = { same_request: "same request", caller: "or called by" };
function linked ([id, kind]) {
  const index = fall.subtasks.findIndex ((s) => s.id === id && !isLeaf (s)), other = fall.subtasks[index];
  const go = () => { show (index); fall.box.focus ({ preventScroll: true }); };
  return el ("div", null, el ("dt", null, LINK[kind]), el ("dd", null, !other ? el ("bdi", null, id)
    : el ("button.link", { type: "button", onclick: go, title: safe (id) }, el ("bdi", null, `${other.service} ${other.name}`), ` at + ${time (other.start)}`)));
}
function toggle (open) {
  const at = fall.rows[fall.chosen], s = chosenSubtask ();
  if (!s) return;
  if (at < 0) s.group.open = true;
  else s.closed = open === undefined ? !s.closed : !open;
  rebuild (at < 0 ? ~at : at);
  choose (fall.chosen);
}
/* What it stands in is unfolded. */
function show (index) {
  for (let i = index; i >= 0; i = fall.subtasks[i].parent) {
    if (i !== index) fall.subtasks[i].closed = false;
    if (fall.subtasks[i].ordinal >= SHOWN_OF_MANY) fall.subtasks[i].group.open = true;
  }
  if (!fall.place.has (index)) rebuild (index);
  choose (fall.place.get (index));
  const s = fall.subtasks[index], wide = fall.to - fall.from;
  if (s.start > fall.to || s.start + s.duration < fall.from) zoomTo (s.start + s.duration / 2 - wide / 2, s.start + s.duration / 2 + wide / 2);
}

fall.box.addEventListener ("keydown", (event) => {
  const to = fall.step (event.key), s = chosenSubtask (), at = fall.rows[fall.chosen];
  if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) pan (event.key === "ArrowLeft" ? -0.2 : 0.2);
  else if (to !== null) choose (to);
  else if (!s) return;
  else if (event.key === "ArrowRight" && (at < 0 || (s.children && s.closed))) toggle (true);
  else if (event.key === "ArrowRight" && s.children) choose (fall.chosen + 1);
  else if (event.key === "ArrowLeft" && at >= 0 && s.children && !s.closed) toggle (false);
  else if (event.key === "ArrowLeft" && s.parent >= 0) show (s.parent);
  else if (event.key === "Enter" || event.key === " ") toggle ();
  else return;
  event.preventDefault ();
});

/* ---- searching --------------------------------------------------------------------------------------- */

/* A subtask of the open tree is met when its name, service or id holds the words. */
function search (go) {
  const query = state.query.toLowerCase ();
  fall.query = query;
  fall.matches = [];
  fall.match = -1;
  if (query) fall.subtasks.forEach ((s, i) => { if (has (s.name, query) || has (s.service, query) || s.id.startsWith (query)) { s.match = query; fall.matches.push (i); } });
  if (go && fall.matches.length) nextMatch (1);
  else fall.draw (true);
  sayFound ();
}
function nextMatch (by) {
  if (!fall.matches.length) return;
  fall.match = (fall.match + by + fall.matches.length) % fall.matches.length;
  show (fall.matches[fall.match]);
  sayFound ();
}
const sayFound = () => {
  byId ("found").textContent = !state.query ? "" : fall.matches.length ? `${fall.match < 0 ? "" : number (fall.match + 1) + " of "}${number (fall.matches.length)}` : "not here";
};
let waiting = 0;
byId ("find").addEventListener ("input", () => {
  clearTimeout (waiting);
  waiting = setTimeout (() => { state.query = byId ("find").value.trim (); showNames (); showList (); search (false); }, 80);
});
byId ("find").addEventListener ("keydown", (event) => {
  if (event.key === "Enter") {
    clearTimeout (waiting);
    if (state.query !== byId ("find").value.trim ()) { state.query = byId ("find").value.trim (); showNames (); showList (); search (false); }
    nextMatch (event.shiftKey ? -1 : 1);
    event.preventDefault ();
  }
});

document.addEventListener ("keydown", (event) => {
  const typing = event.target === byId ("find");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (state.query || byId ("find").value) { byId ("find").value = state.query = ""; showNames (); showList (); search (false); }
    else if (state.range) { state.range = null; showSpread (); showList (); }
    else zoomTo (0, fall.whole);
    if (typing) fall.box.focus ({ preventScroll: true });
  } else if (typing) return;
  else if (event.key === "/") { byId ("find").focus (); byId ("find").select (); }
  else if (event.key === "+" || event.key === "=") zoom (1.5);
  else if (event.key === "-" || event.key === "_") zoom (1 / 1.5);
  else if (event.key === "0") zoomTo (0, fall.whole);
  else return;
  event.preventDefault ();
});
byId ("in").addEventListener ("click", () => zoom (1.5));
byId ("out").addEventListener ("click", () => zoom (1 / 1.5));
byId ("fit").addEventListener ("click", () => zoomTo (0, fall.whole));
byId ("fold").addEventListener ("click", () => {
  const open = byId ("fold").textContent !== "Fold", at = fall.rows[fall.chosen];
  for (const s of fall.subtasks) s.closed = false;
  for (const g of fall.groups) g.open = open;
  rebuild (at === undefined ? 0 : at < 0 ? ~at : at);
});
draggable (fall.head.children[1], () => [fall.from, fall.to]);
draggable (byId ("over"), () => [0, fall.whole]);

/* ---- start ------------------------------------------------------------------------------------------- */

let drawing = 0;
const redraw = () => { cancelAnimationFrame (drawing); drawing = requestAnimationFrame (() => { showSpread (); showMap (); showOverview (); fall.draw (true); }); };
window.addEventListener ("resize", redraw);
matchMedia ("(prefers-color-scheme: dark)").addEventListener ("change", redraw);
for (const n of names) { hue (n.service); for (const row of n.rows) if (!isLeaf (row)) hue (row.service); }
showHead ();
const asked = executions.find ((e) => e.task === data.task);
if (asked && asked.tree >= 0) openTree (asked);
if (asked) chooseName (asked.name, asked.service, asked.orphan);
else if (names.length) chooseName (names[0].name, names[0].service, 0);
else if (executions.length) chooseName (executions[0].name, executions[0].service, executions[0].orphan);
redraw ();
if (asked) byId ("fall-box").scrollIntoView ();
document.body.dataset.ready = "yes";
})();
