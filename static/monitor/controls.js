// Controls of the study, for experimenters: each asks for confirmation and then reports the result.

import { byId, clock, make } from "./format.js";

let toastTimer = 0;

function toast(message) {
  byId("toast").textContent = message;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (byId("toast").textContent = ""), 6000);
}

const DONE = { start: "Study started.", pause: "Study paused.", resume: "Study resumed.", stop: "Study stopped.", reopen: "Study reopened.", budget: "Budget changed.", trials: "Changed for participants who arrive from now on.", exclude: "Participant excluded. The model is being refitted without them.", restore: "Participant restored. The model is being refitted with them.", revoke: "Link revoked.", link: "Link created." };

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
    form.querySelector("[data-subject]").textContent = opener.dataset.name ?? `P${opener.dataset.participant}`;
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
    const result = await reply.json().catch(() => ({}));
    if (!reply.ok) throw new Error(result.problem ?? `The server rejected the request (status ${reply.status}).`);
    form.closest("dialog").close();
    toast(DONE[form.dataset.act] ?? "Done.");
    if (result.address) showLink(new URL(result.address, location.href).href);
    if (["link", "revoke"].includes(form.dataset.act)) await links(address);
    await refresh();
  } catch (error) {
    const alert = form.querySelector("[role=alert]");
    alert.textContent = error instanceof TypeError ? "Can’t reach the server. Nothing was changed." : error.message;
    alert.hidden = false;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

function showLink(address) {
  const field = make("input", { readOnly: true, value: address, "aria-label": "The new link", className: "address" });
  byId("links").before(make("p", { className: "new-link" }, "Copy this link now; it will not be shown again: ", field));
  field.select();
}

async function links(address) {
  const reply = await fetch(`${address}links`, { headers: { "X-Monitor": "1" } });
  if (!reply.ok) return;
  const all = (await reply.json()).links;
  byId("links").replaceChildren(...all.map((link) => {
    const when = link.revoked_at ? `revoked ${clock(link.revoked_at)}` : `created ${clock(link.created_at)}`;
    const revoke = link.revoked_at ? null : make("button", { type: "button", className: "link", "aria-label": `Revoke the link for ${link.label}`, data: { dialog: "revoke", act: `links/${link.id}/revoke`, person: "0", name: link.label } }, "Revoke");
    return make("li", { className: link.revoked_at ? "gone" : "" }, `View-only link for ${link.label}, ${when} `, revoke);
  }));
}
