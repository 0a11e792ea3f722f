// Connection to the server: requests are retried until they succeed; one window at a time.
"use strict";

(() => {
  const REQUEST_TIMEOUT = 15000;
  const MAX_PAUSE = 20000;
  const PRELOAD_TIMEOUT = 1500;
  const banner = document.getElementById("connection");
  const retry = banner.querySelector("button");
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  function showBanner(problem) {
    banner.hidden = !problem;
    banner.querySelectorAll("[data-when]").forEach((text) => (text.hidden = text.dataset.when !== problem));
  }

  function pause(tries) {
    return new Promise((done) => {
      // Random jitter keeps a whole classroom from reconnecting at the same moment.
      const timer = setTimeout(end, Math.min(MAX_PAUSE, 500 * 2 ** tries) * (0.75 + Math.random() / 2));
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
    showBanner("offline");
    await pause(tries);
    showBanner("");
  };

  // The next trial replaces the current one only once its images can be painted immediately.
  function imagesReady(html) {
    const part = new DOMParser().parseFromString(html, "text/html");
    const all = [...part.querySelectorAll("img")].map((image) =>
      lore.decodedImage(image.getAttribute("src")).catch(() => 0),
    );
    return Promise.race([Promise.all(all), wait(PRELOAD_TIMEOUT)]);
  }

  // Every request may be sent twice: the server stores an answer once and repeats its reply.
  async function persistent(address, request) {
    for (let tries = 0; ; tries++) {
      let problem = "offline";
      try {
        const reply = await fetch(address, { ...request, signal: AbortSignal.timeout?.(REQUEST_TIMEOUT) });
        const { status, headers } = reply;
        if (status < 500 && status !== 408 && status !== 429) {
          const html = await reply.text();
          await imagesReady(html);
          showBanner("");
          return new Response(html, { status, headers });
        }
        problem = "trouble";
      } catch {}
      showBanner(problem);
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
    // Waits for an answer that is being sent: its reply can also say that this window is older.
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
