// The monitor: polls for new data every three seconds and updates the page.

import * as charts from "./charts.js";
import * as controls from "./controls.js";
import * as drawer from "./drawer.js";
import { byId, bytes, clock, count, decimal, make, plural, range, say, seconds, share } from "./format.js";
import * as participants from "./participants.js";
import * as figures from "./figures.js";

const EVERY_MS = 3000;
const address = document.body.dataset.address;
const steers = "steers" in document.body.dataset;
const page = { version: "", data: null, items: [], timer: 0, asking: false };

async function ask() {
  if (page.asking) return;
  page.asking = true;
  clearTimeout(page.timer);
  try {
    const headers = { "X-Monitor": "1" };
    if (page.version) headers["If-None-Match"] = `"${page.version}"`;
    const reply = await fetch(`${address}data`, { headers, cache: "no-store" });
    if (reply.status === 401 || reply.status === 403) return void location.reload();
    if (reply.status === 200) {
      page.data = await reply.json();
      page.version = page.data.version;
      render();
    } else if (reply.status !== 304) throw Object.assign(new Error(String(reply.status)), await reply.json().catch(() => ({})));
    byId("connection").hidden = true;
  } catch (error) {
    const since = page.data ? ` Last update: ${clock(page.data.at)}.` : "";
    say(byId("connection"), `${error.problem || "Can’t reach the server; retrying."}${since}`);
    byId("connection").hidden = false;
  } finally {
    page.asking = false;
    // A hidden page need not be up to date.
    if (!document.hidden) page.timer = setTimeout(ask, EVERY_MS);
  }
}

function render() {
  const data = page.data;
  storage(data.storage);
  where(data.where);
  figures.draw(data, page.items, render);
  participants.draw(data.participants);
  drawer.update(data.participants.rows);
  machine(data.machine);
  log(data.log);
  say(byId("updated"), `As of ${clock(data.at)}`);
  document.body.dataset.version = page.version;
}

function storage(error) {
  const banner = byId("storage");
  banner.hidden = !error;
  say(banner, error ? `Error: ${error.name}. ${error.meaning} ${error.advice}` : "");
}

function simulated([title, ...sentences]) {
  const banner = byId("simulated");
  banner.hidden = !title;
  const key = [title, ...sentences].join(" ");
  if (banner.dataset.key === key) return;
  banner.dataset.key = key;
  banner.replaceChildren(make("strong", {}, title ?? ""), ` ${sentences.join(" ")}`);
}

function where(data) {
  simulated(data.banner);
  const status = byId("status");
  const name = data.status === "paused" && !data.begun ? "not started" : data.status;
  say(status, name);
  status.className = `pill ${data.status}`;
  say(byId("headline"), data.headline);
  say(byId("explanation"), data.explanation);
  say(byId("predicted"), data.predicted);
  // That the criteria are met is said by the headline and by the figure below.
  say(byId("forecast"), data.to_stop.met ? "" : data.to_stop.message);
  say(byId("reason"), data.status === "stopped" && data.reason ? `Reason for stopping: ${data.reason}` : "");
  say(byId("answers"), count(data.answers));
  say(byId("budget"), `of ${count(data.budget)}`);
  const inside = [`${count(data.fitted)} in the model`];
  if (data.imported) inside.push(`${count(data.imported)} of them imported`);
  if (data.waiting) inside.push(`${count(data.waiting)} waiting`);
  say(byId("fitted"), inside.join(" · "));
  byId("spent").value = Math.min(1, data.answers / data.budget);
  const who = data.participants;
  say(byId("participants-now"), count(who.under_way));
  const parts = [`${count(who.finished)} finished`, `${count(who.left)} dropped out`];
  if (who.declined) parts.push(`${count(who.declined)} declined`);
  if (who.excluded) parts.push(`${count(who.excluded)} excluded`);
  say(byId("participant-counts"), parts.join(" · "));
  pace(data);
  charts.spark(byId("spark"), data.spark);
  sensitivity(data.sensitivity);
  toStop(data.to_stop, data.status);
  cost(data.cost);
  enableControls(data.status, data.begun);
}

// Rates below one per minute are easier to read per hour.
function pace({ per_minute: rate, pace_minutes: window, status }) {
  const slow = rate != null && rate < 1;
  const shown = slow ? 60 * rate : rate;
  say(byId("pace"), decimal(shown, shown != null && shown > 0 && shown < 9.95 ? 1 : 0));
  const unit = slow ? "per hour" : "per minute";
  say(byId("pace-unit"), rate == null && status !== "running" ? status : unit);
  say(byId("pace-window"), rate == null ? "" : `answers, last ${window === 60 ? "hour" : `${window} minutes`}`);
}

// What is known about dimensions beyond those of the map; only some stopping rules test for them.
function sensitivity(known) {
  byId("sensitivity").hidden = !known;
  if (!known) return;
  for (const part of ["figure", "unit", "note"]) say(byId(`sensitivity-${part}`), known[part]);
}

function toStop({ answers, participants, met }, status) {
  const ended = status === "stopped";
  const given = answers && !met && !ended;
  byId("to-stop").classList.toggle("in-words", !given);
  say(byId("to-stop"), ended ? "ended" : met ? "criteria met" : given ? range(answers) : "not yet known");
  say(byId("to-stop-unit"), given ? "more answers" : "");
  say(byId("to-stop-participants"), given ? `, ${range(participants)} participant${participants[1] === 1 ? "" : "s"}` : "");
}

function cost(data) {
  say(byId("cost"), data.currency === null ? "–" : data.shown);
  say(byId("cost-more"), data.message);
}

function enableControls(status, begun) {
  const offered = { start: status === "paused" && !begun, resume: status === "paused" && begun, pause: status === "running", stop: status !== "stopped", reopen: status === "stopped" };
  for (const [name, is] of Object.entries(offered)) {
    const button = document.querySelector(`.controls [data-dialog=${name}]`);
    if (button) button.hidden = !is;
  }
}

function machine(data) {
  const worker = { alive: `running, last heartbeat ${data.beat_seconds} s ago`, silent: `no heartbeat for ${data.beat_seconds} s`, unknown: "no heartbeat yet" }[data.worker];
  const doing = data.doing === "waiting" ? "idle" : data.doing;
  const rows = [
    ["Worker", worker + (doing ? ` (${doing})` : ""), data.worker === "silent"],
    ["Backlog", `${plural(data.lag_answers, "answer")} waiting`, data.lag_answers > 200],
    ["Questions", `${count(data.ready)} ready, ${count(data.out)} in progress`],
    ["Random fallback questions", `${count(data.fallback)} of the last 500`, data.fallback > 100],
    ["Latest refit", seconds(data.seconds.refit)],
    ["Latest audit", seconds(data.seconds.audit)],
    ["Question selection", seconds(data.seconds.select)],
    ["Share of random questions", share(data.random_share)],
    ["Model", `version ${count(data.version)}`],
    ["Restarts", count(data.restarts), data.restarts > 0],
    ["Database", bytes(data.bytes)],
    ["Latest backup", data.backup_at == null ? "none yet" : clock(data.backup_at)],
    ["Errors", data.error || "none", Boolean(data.error)],
  ];
  const list = byId("machine-list");
  const key = JSON.stringify(rows);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...rows.map(([name, value, bad]) => make("div", { className: bad ? "bad" : "" }, make("dt", {}, name), make("dd", {}, value))));
}

function log(events) {
  const list = byId("log");
  const key = JSON.stringify(events);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...(events.length ? events.map(entry) : [make("li", {}, "No decisions yet.")]));
}

function entry(one) {
  return make("li", {}, make("time", { dateTime: new Date(one.at).toISOString() }, clock(one.at)), make("span", {}, make("b", {}, one.what), one.by ? ` by ${one.by}` : "", one.reason ? `: “${one.reason}”` : ""));
}

async function begin() {
  participants.start(steers, drawer.open);
  drawer.start(address, steers, () => page.items);
  if (steers) controls.start(address, () => page.data?.where, async () => { page.asking = false; await ask(); });
  const reply = await fetch(`${address}items`, { headers: { "X-Monitor": "1" } });
  if (!reply.ok) return void location.reload();
  page.items = (await reply.json()).items;
  await ask();
  document.addEventListener("visibilitychange", () => !document.hidden && ask());
  figures.listen(() => page.data && render());
}

begin();
