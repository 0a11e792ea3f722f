// Questions with several options: the arrow keys, and choices that can be changed until confirmed.
"use strict";

(() => {
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const DIGITS = "1234567890-=";
  const FOCUSABLE = ".option:is(button), .option .choose";
  const chosen = new WeakMap(); // positions by form, in the order of choice

  const several = () => document.querySelector(".trial[data-pick]:not(.answered)");
  const positionOf = (button) => Number(button.closest("[data-option]").dataset.option);

  // Without scripts, options are check boxes, or named in lists; with scripts, they are buttons.
  lore.prepare = (form) => {
    if (!form.dataset.pick) return;
    chosen.set(form, []);
    form.querySelectorAll(".fallback, input[name=chosen]").forEach((part) => part.remove());
    form.querySelectorAll("[data-toggle]").forEach((part) => {
      const button = document.createElement("button");
      for (const { name, value } of part.attributes) button.setAttribute(name, value);
      button.type = "button";
      button.append(...part.childNodes);
      button.querySelector("kbd").textContent = DIGITS[positionOf(part)];
      part.replaceWith(button);
    });
    show(form);
  };

  lore.toggle = (button) => {
    const { form } = button;
    const all = chosen.get(form);
    const position = positionOf(button);
    const at = all.indexOf(position);
    if (at < 0 && all.length === Number(form.dataset.pick)) return lore.remind(form);
    if (!lore.counts(position)) return;
    if (at < 0) all.push(position);
    else all.splice(at, 1);
    show(form);
  };

  lore.remind = (form) => {
    show(form);
    const count = form.querySelector("#count");
    if (complete(form)) count.textContent += ` · ${form.dataset.undoFirst}`;
    // Starts the animation again.
    count.classList.remove("reminded");
    void count.offsetWidth;
    count.classList.add("reminded");
  };

  const complete = (form) => chosen.get(form).length === Number(form.dataset.pick);

  function show(form) {
    const all = chosen.get(form);
    form.querySelectorAll("[data-toggle]").forEach((button) => {
      const at = all.indexOf(positionOf(button));
      button.setAttribute("aria-pressed", at >= 0);
      button.querySelectorAll(".place").forEach((part) => part.remove());
      if (at >= 0) button.append(...mark(form, at + 1));
    });
    lore.fill(form, all.map((position) => ["chosen", position]));
    form.querySelector("#count").textContent = form.dataset.count.replace("{chosen}", all.length);
    form.querySelector(".main").setAttribute("aria-disabled", !complete(form));
  }

  function mark(form, place) {
    const ranked = form.dataset.ordered !== undefined;
    const seen = document.createElement("span");
    Object.assign(seen, { className: "place", textContent: ranked ? place : "✓", ariaHidden: "true" });
    if (!ranked) return [seen];
    const heard = document.createElement("span");
    heard.className = "place unseen";
    heard.textContent = ` ${form.dataset.place.replace("{place}", place)}`;
    return [seen, heard];
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-toggle]");
    // A double click chooses; its second half would undo that.
    if (button?.form?.matches(".trial") && event.detail < 2) lore.toggle(button);
  });

  document.addEventListener("keydown", (event) => {
    const busy = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    const form = document.querySelector(".trial[data-options]:not(.answered)");
    if (!form || busy) return;
    if (ARROWS[event.key] && !event.target.closest("audio, video")) {
      event.preventDefault();
      move(form, ...ARROWS[event.key]);
    }
  });

  // Enter confirms, whatever has the focus; before that, it chooses the option in focus. In the
  // capture phase on the document: after participant.js has noted the time, before the button acts.
  document.addEventListener(
    "keydown",
    (event) => {
      const form = several();
      if (event.key !== "Enter" || !form) return;
      const onOption = event.target.closest("[data-toggle]");
      if (event.repeat) return onOption && event.preventDefault();
      if (event.target.closest("a, audio, video, .play, .skip, .main")) return;
      if (onOption && !complete(form)) return;
      event.preventDefault();
      lore.confirm(form, event);
    },
    true,
  );

  // The nearest option in a direction, wherever the writing direction and the window have put it.
  function move(form, right, down) {
    const all = [...form.querySelectorAll(FOCUSABLE)];
    const now = all.indexOf(document.activeElement);
    if (now < 0) return all[right + down > 0 ? 0 : all.length - 1].focus();
    const centre = (part) => {
      const { x, y, width, height } = (part.closest(".option") || part).getBoundingClientRect();
      return [x + width / 2, y + height / 2];
    };
    const [x, y] = centre(all[now]);
    let best = null;
    let least = Infinity;
    for (const other of all) {
      const [left, top] = centre(other);
      const along = (left - x) * right + (top - y) * down;
      const across = Math.abs((left - x) * down) + Math.abs((top - y) * right);
      if (along > 1 && along + 2 * across < least) [best, least] = [other, along + 2 * across];
    }
    best?.focus();
  }
})();
