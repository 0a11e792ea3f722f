// The way to the server: requests are repeated until they are answered; one window at a time.
"use strict";

(() => {
  const PATIENCE = 15000;
  const LONGEST = 20000;
  const PREPARING = 1500;
  const banner = document.getElementById("connection");
  const retry = banner.querySelector("button");
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  function tell(trouble) {
    banner.hidden = !trouble;
    banner.querySelectorAll("[data-when]").forEach((text) => (text.hidden = text.dataset.when !== trouble));
  }

  function pause(tries) {
    return new Promise((done) => {
      // A little chance keeps a whole classroom from coming back in the same moment.
      const timer = setTimeout(end, Math.min(LONGEST, 500 * 2 ** tries) * (0.75 + Math.random() / 2));
      function end() {
        clearTimeout(timer);
        removeEventListener("online", end);
        retry.removeEventListener("click", end);
        done();
      }
      addEventListener("online", end);
      retry.addEventListener("click", end);
    });
  }

  lore.reconnect = async (tries) => {
    tell("offline");
    await pause(tries);
    tell("");
  };

  // The next trial replaces the last one only when its pictures can be painted at once.
  function pictures(html) {
    const part = new DOMParser().parseFromString(html, "text/html");
    const all = [...part.querySelectorAll("img")].map((image) =>
      lore.picture(image.getAttribute("src")).catch(() => 0),
    );
    return Promise.race([Promise.all(all), wait(PREPARING)]);
  }

  // Every request may be sent twice: the server stores an answer once and says the same again.
  async function persistent(address, request) {
    for (let tries = 0; ; tries++) {
      let trouble = "offline";
      try {
        const reply = await fetch(address, { ...request, signal: AbortSignal.timeout?.(PATIENCE) });
        const { status, headers } = reply;
        if (status < 500 && status !== 408 && status !== 429) {
          const html = await reply.text();
          await pictures(html);
          tell("");
          return new Response(html, { status, headers });
        }
        trouble = "trouble";
      } catch {}
      tell(trouble);
      await pause(tries);
    }
  }

  document.addEventListener("htmx:config:request", (event) => {
    event.detail.ctx.fetch = persistent;
  });

  // ---- other windows ----

  const address = location.pathname;
  const visit = () => Number(document.querySelector("#stage [data-visit]")?.dataset.visit || 0);
  if (visit() && "BroadcastChannel" in window) {
    const channel = new BroadcastChannel(`lore:${address}`);
    let newest = visit();
    // An answer under way is waited for: its reply, too, may belong to the older window.
    const giveWay = () => {
      if (document.querySelector("[data-state=sent]")) return;
      if (visit() && visit() < newest) location.replace(`${address}/elsewhere`);
    };
    channel.onmessage = ({ data }) => {
      if (data.alive) {
        const note = document.getElementById("taken-over");
        note.hidden = false;
        document.addEventListener("htmx:after:swap", () => (note.hidden = true), { once: true });
        return;
      }
      if (!visit() || visit() >= data.visit) return;
      newest = data.visit;
      channel.postMessage({ alive: true });
      giveWay();
    };
    document.addEventListener("htmx:after:swap", giveWay);
    channel.postMessage({ visit: newest });
  }
})();
