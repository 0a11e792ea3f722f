// Levers: every one asks first, then tells what happened. Only experimenters have them.

import { byId, clock, make } from "./format.js";

let toastTimer = 0;

export function toast(words) {
  byId("toast").textContent = words;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (byId("toast").textContent = ""), 6000);
}

const DONE = { start: "The study is open.", pause: "Paused.", resume: "Going on.", stop: "Stopped.", reopen: "Open again.", budget: "The budget is changed.", trials: "Changed for everybody who comes from now on.", exclude: "Excluded. The model is fitted again without them.", restore: "Restored. The model is fitted again with them.", revoke: "Revoked.", link: "Made." };

export function start(address, where, refresh) {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) open(address, opener, where());
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
  });
  for (const form of document.querySelectorAll("dialog form[data-act]"))
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form, refresh, address);
    });
  byId("print")?.addEventListener("click", () => print());
  if (byId("links")) links(address);
}

function open(address, opener, where) {
  const dialog = byId(`dialog-${opener.dataset.dialog}`);
  const form = dialog.querySelector("form");
  form.querySelector("[role=alert]").hidden = true;
  if (opener.dataset.act) {
    form.setAttribute("action", address + opener.dataset.act);
    form.querySelector("[data-person]").textContent = opener.dataset.name ?? `Participant ${opener.dataset.person}`;
  }
  for (const input of form.querySelectorAll("input:not([type=hidden])")) input.value = "";
  const fill = { answers: where?.budget, participants: where?.budget_participants, trials: where?.trials };
  for (const [name, value] of Object.entries(fill)) if (form.elements[name]) form.elements[name].value = value ?? "";
  dialog.showModal();
}

async function send(form, refresh, address) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const reply = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { "X-Monitor": "1" } });
    if (reply.status === 401) return void location.reload();
    const told = await reply.json().catch(() => ({ problem: `The server refused (${reply.status}).` }));
    if (!reply.ok) throw new Error(told.problem ?? `The server refused (${reply.status}).`);
    form.closest("dialog").close();
    toast(DONE[form.dataset.act] ?? "Done.");
    if (told.address) showLink(new URL(told.address, location.href).href);
    if (["link", "revoke"].includes(form.dataset.act)) await links(address);
    await refresh();
  } catch (error) {
    const alert = form.querySelector("[role=alert]");
    alert.textContent = error instanceof TypeError ? "The server cannot be reached; nothing was changed." : error.message;
    alert.hidden = false;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

function showLink(address) {
  const field = make("input", { readOnly: true, value: address, "aria-label": "The new link", className: "address" });
  byId("links").before(make("p", { className: "new-link" }, "Copy it now, it is not shown again: ", field));
  field.select();
}

async function links(address) {
  const reply = await fetch(`${address}links`, { headers: { "X-Monitor": "1" } });
  if (!reply.ok) return;
  const found = (await reply.json()).links;
  byId("links").replaceChildren(...found.map((one) => {
    const when = one.revoked_at ? `revoked ${clock(one.revoked_at)}` : `since ${clock(one.created_at)}`;
    const revoke = one.revoked_at ? null : make("button", { type: "button", className: "link", "aria-label": `Revoke the link for ${one.label}`, data: { dialog: "revoke", act: `links/${one.id}/revoke`, person: "0", name: one.label } }, "Revoke");
    return make("li", { className: one.revoked_at ? "gone" : "" }, `Link for ${one.label}, ${when} `, revoke);
  }));
}
