// Pages other than trials: keys that continue, the pointer, the code, the automatic return.
"use strict";

(() => {
  const root = document.documentElement;
  const announcement = document.getElementById("announcement");
  const CONTROLS = "a, audio, button, input, select, summary, textarea, video";
  let pointer = null; // last position
  let returning = null; // timer of the automatic return

  // ---- Enter and Space continue ----

  document.addEventListener("keydown", (event) => {
    const busy = event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    if ((event.key !== "Enter" && event.key !== " ") || busy || event.target.closest(CONTROLS)) return;
    const target = document.querySelector("#stage [data-continue]");
    // On a page that is longer than the window, Space scrolls until its end is reached.
    const below = root.scrollHeight - innerHeight - scrollY > 4;
    if (!target || (event.key === " " && below)) return;
    event.preventDefault();
    target.click();
  });

  // ---- nothing looks chosen until the pointer moves ----

  addEventListener("pointermove", ({ screenX, screenY, pointerType }) => {
    // Browsers also report a move when only the page has changed under the pointer.
    const moved = pointer && (pointer.x !== screenX || pointer.y !== screenY);
    pointer = { x: screenX, y: screenY };
    if (moved && pointerType !== "touch") root.classList.add("pointing");
  });

  // ---- the code ----

  async function copy(button) {
    const code = document.getElementById("code");
    const note = button.nextElementSibling;
    let copied = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // The Clipboard API is blocked inside another site's frame and without a secure connection.
      getSelection().selectAllChildren(code);
      copied = document.execCommand("copy");
    }
    note.textContent = copied ? button.dataset.copied : button.dataset.failed;
    announcement.textContent = note.textContent;
  }

  // ---- the automatic return ----

  function comeBack(part) {
    const link = document.getElementById("exit");
    const text = part.querySelector("span");
    let left = Number(part.dataset.seconds);
    part.hidden = false;
    announcement.textContent = text.textContent;
    part.querySelector("button").addEventListener("click", stay, { once: true });
    returning = setInterval(() => {
      left -= 1;
      text.textContent = part.dataset.text.replace("{seconds}", left);
      if (left > 0) return;
      clearInterval(returning);
      link.click();
    }, 1000);
    function stay() {
      clearInterval(returning);
      announcement.textContent = "";
      part.remove();
      link.focus();
    }
  }

  // ---- each new page ----

  function arrive() {
    const stage = document.getElementById("stage");
    const copying = stage.querySelector(".copying");
    const part = stage.querySelector(".returning");
    root.classList.remove("pointing");
    clearInterval(returning);
    if (copying) {
      const button = copying.querySelector("button");
      copying.hidden = false;
      button.addEventListener("click", () => copy(button));
    }
    if (part) comeBack(part);
  }

  arrive();
  document.addEventListener("htmx:after:swap", arrive);
})();
