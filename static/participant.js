// One trial: shown once all of it is ready, answered once, timed from its onset.
"use strict";

const lore = (() => {
  document.documentElement.classList.add("js");

  const KEYS = { ArrowLeft: "left", 1: "left", ArrowRight: "right", 2: "right", 3: "skip" };
  const SETTLING = 200; // a press this soon after onset was meant for the previous page
  const TOGETHER = 1000; // maximum time between the clicks of a double click, or a press and its click
  const MEDIA_TIMEOUT = 8000;
  const TRIES = 3;
  const ANSWERABLE = ".trial:not(.answered)";
  const MAX_AWAY = 50;
  const PENDING = "lore-pending";
  const preloaded = new Map(); // images of the next trial, referenced so that they stay decoded

  let trial = null; // state of the trial on the page
  let gesture = null; // the participant's last action, with its time
  let press = {}; // the last press of a pointer or key
  let page = 0; // number of pages shown so far
  let shown = 0; // when the current page was shown
  let clicks = { page, began: 0 }; // of a double click: page of its first click, start of its last

  // ---- showing ----

  const painted = () =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  const playables = (form) => form.querySelectorAll("audio, video");

  const decodedImage = (address) => {
    const image = new Image();
    image.src = address;
    return image.decode().then(() => image);
  };

  const loadable = (media) =>
    new Promise((done, fail) => {
      if (media.error) return fail();
      if (media.readyState >= 2) return done();
      media.addEventListener("loadeddata", done, { once: true });
      media.addEventListener("error", fail, { once: true });
      // Some phones load nothing before the first tap.
      setTimeout(done, MEDIA_TIMEOUT);
    });

  // A stimulus that fails to load is requested again; if all attempts fail, the item is recorded.
  async function complete(stimulus, now) {
    const isImage = stimulus.tagName === "IMG";
    for (let tries = 0; tries < TRIES; tries += navigator.onLine ? 1 : 0) {
      try {
        return await (isImage ? stimulus.decode() : loadable(stimulus));
      } catch {}
      if (tries < TRIES - 1) await lore.reconnect(tries);
      if (isImage) stimulus.src = stimulus.getAttribute("src");
      else stimulus.load();
    }
    now.failed.push(stimulus.closest("[data-item]").dataset.item);
    stimulus.dispatchEvent(new Event("failed"));
  }

  async function present(form) {
    const now = { form, failed: [], played: {}, away: [], since: {}, onset: null };
    trial = now;
    form.dataset.state = "loading";
    const blank = wait(Number(form.dataset.interval || 0));
    playables(form).forEach((media) => prepare(media, now));
    const stimuli = [...form.querySelectorAll("img, audio, video")];
    await Promise.all([...stimuli.map((stimulus) => complete(stimulus, now)), blank]);
    if (trial !== now) return;
    form.dataset.state = "viewing";
    now.onset = await painted();
    if (trial !== now) return;
    if (!document.hasFocus()) now.since.blur = now.onset;
    announce(form);
    preload(form);
    if (form.dataset.timeout) countDown(now);
    await wait(settled(form));
    now.seen = true;
    open(now);
    resend(form);
  }

  function open(now) {
    const complete = now.form.querySelector(".hint") === null || allPlayed(now.form);
    if (now !== trial || !now.seen || !complete || now.form.dataset.state !== "viewing") return;
    now.form.dataset.state = "open";
  }

  function countDown(now) {
    let left = Number(now.form.dataset.timeout);
    let last = performance.now();
    const tick = () => {
      if (now !== trial || now.form.dataset.state === "sent") return;
      const time = performance.now();
      // The time limit does not run while the page is hidden.
      if (!document.hidden) left -= time - last;
      last = time;
      if (left <= 0) submit(now.form, "timeout", { time, began: Infinity, kind: "clock" });
      else setTimeout(tick, Math.min(left, 250));
    };
    tick();
  }

  function announce(form) {
    const parts = [".note", "#done", ".anchor, .option"];
    const texts = parts.flatMap((part) => [...form.querySelectorAll(part)]).map((part) => {
      const media = part.querySelector("audio, video");
      if (media) return media.getAttribute("aria-label");
      const copy = part.cloneNode(true);
      copy.querySelector("kbd")?.remove();
      return `${copy.textContent} ${part.querySelector("img")?.alt || ""}`.replace(/\s+/g, " ").trim();
    });
    document.getElementById("announcement").textContent = texts
      .map((text) => text.replace(/\.$/, ""))
      .filter(Boolean)
      .join(". ");
  }

  function preload(form) {
    preloaded.clear();
    for (const address of (form.dataset.upcoming || "").split(" ").filter(Boolean)) {
      if (/\.(png|jpe?g|webp|gif)$/.test(address)) preloaded.set(address, decodedImage(address).catch(() => 0));
      else fetch(address).then((reply) => reply.blob()).catch(() => 0);
    }
  }

  // ---- audio and video ----

  function prepare(media, now) {
    const { form } = now;
    const side = media.closest(".option")?.querySelector("[name=side]").value || "anchor";
    const button = media.parentElement.querySelector(".play");
    const finished = () => {
      now.played[side] = (now.played[side] || 0) + 1;
      button.dataset.played = "";
      const hint = form.querySelector(".hint");
      if (hint && allPlayed(form)) hint.dataset.done = "";
      open(now);
    };
    now.played[side] = 0;
    media.controls = false;
    button.hidden = false;
    form.querySelector(".hint")?.removeAttribute("hidden");
    button.addEventListener("click", () => {
      playables(form).forEach((other) => other.pause());
      if (button.dataset.playing !== undefined) return;
      media.currentTime = 0;
      media.play().catch(() => 0);
    });
    media.addEventListener("play", () => (button.dataset.playing = ""));
    media.addEventListener("pause", () => delete button.dataset.playing);
    media.addEventListener("ended", finished);
    // Media that cannot be played must not block the participant.
    media.addEventListener("failed", finished);
    media.addEventListener("error", () => form.dataset.state !== "loading" && finished());
  }

  const allPlayed = (form) =>
    [...form.querySelectorAll(".play")].every((button) => button.dataset.played !== undefined);

  // ---- answering ----

  function submit(form, side, how) {
    let button = form.querySelector(`[name=side][value=${side}]`);
    if (!button && side === "timeout") {
      button = form.appendChild(document.createElement("button"));
      Object.assign(button, { name: "side", value: side, hidden: true });
      form.dataset.state = "open";
    }
    if (!button) return;
    gesture = how;
    form.requestSubmit(button);
  }

  document.addEventListener("keydown", (event) => {
    const side = KEYS[event.key];
    const busy = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    if (!trial || !side || busy || !trial.form.isConnected) return;
    event.preventDefault();
    if (event.repeat || trial.form.dataset.state !== "open") return;
    submit(trial.form, side, { time: event.timeStamp, began: event.timeStamp, kind: "key" });
  });

  // In the capture phase, before any other listener.
  const first = (kinds, act) => kinds.forEach((kind) => addEventListener(kind, act, true));
  first(["pointerdown", "keydown"], ({ repeat, timeStamp, pointerType }) => {
    if (!repeat) press = { down: timeStamp, up: Infinity, pointerType };
  });
  first(["pointerup", "pointercancel", "keyup"], ({ timeStamp }) => (press.up = timeStamp));

  first(["click"], (event) => {
    const time = event.timeStamp;
    const began = time - press.up < TOGETHER ? press.down : time;
    const kind = event.detail === 0 ? "key" : event.pointerType || press.pointerType || "mouse";
    gesture = { time, began, kind };
    const again = event.detail > 1 && began - clicks.began < TOGETHER;
    clicks = { page: again ? clicks.page : page, began };
    // The second click of a double click belongs to the page of the first.
    if (clicks.page !== page) ignore(event);
  });

  // Only the first response counts, however often something is pressed.
  first(["submit"], (event) => {
    const form = event.target;
    const answering = form.matches(ANSWERABLE);
    const early = answering ? tooEarly(form) : gesture?.began < shown + SETTLING;
    if (form.dataset.state === "sent" || early) return ignore(event);
    if (answering) {
      form.elements.timings.value ||= JSON.stringify(measured());
      event.submitter?.setAttribute("data-chosen", "");
      playables(form).forEach((media) => media.pause());
      remember(form, event.submitter?.value);
    }
    form.dataset.state = "sent";
  });

  function ignore(event) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  const settled = (form) => Math.max(SETTLING, form.dataset.minView || 0);
  // Also presses that started earlier and are only released or handled now.
  const tooEarly = (form) =>
    form.dataset.state !== "open" || (gesture && gesture.began < trial.onset + settled(form));

  function measured() {
    const time = gesture?.time ?? performance.now();
    const round = (value) => Math.round(value * 10) / 10;
    ["blur", "hidden"].forEach((what) => back(what, time));
    return {
      rt_ms: round(time - trial.onset),
      onset_at: round(performance.timeOrigin + trial.onset),
      response_at: round(performance.timeOrigin + time),
      away: trial.away.map(({ what, from, to }) => [what, round(from), round(to)]),
      background: background(),
      viewport: [innerWidth, innerHeight, devicePixelRatio],
      pointer: gesture?.kind || "",
      ...(Object.keys(trial.played).length && { played: trial.played }),
      ...(trial.failed.length && { failed: trial.failed }),
    };
  }

  // The actual background: the study's colour, unless the device forces its own.
  function background() {
    const parts = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) || [];
    const hex = (part) => Math.round(part).toString(16).padStart(2, "0");
    return `#${parts.slice(0, 3).map(hex).join("")}`;
  }

  // Times away are relative to the onset, like the response.
  function gone(what, time) {
    if (trial && trial.onset !== null) trial.since[what] ??= time;
  }
  function back(what, time) {
    if (!trial || trial.since[what] === undefined) return;
    if (trial.away.length < MAX_AWAY) trial.away.push({ what, from: trial.since[what] - trial.onset, to: time - trial.onset });
    delete trial.since[what];
  }
  addEventListener("blur", (event) => gone("blur", event.timeStamp));
  addEventListener("focus", (event) => back("blur", event.timeStamp));
  document.addEventListener("visibilitychange", (event) =>
    (document.hidden ? gone : back)("hidden", event.timeStamp),
  );

  // An answer that was not acknowledged before the page was closed is sent when it is reopened.
  function remember(form, side) {
    const { question, timings } = form.elements;
    try {
      sessionStorage.setItem(PENDING, JSON.stringify([question.value, side, timings.value]));
    } catch {} // storage may be forbidden inside a frame
  }
  function recall() {
    try {
      const pending = JSON.parse(sessionStorage.getItem(PENDING));
      sessionStorage.removeItem(PENDING);
      return pending;
    } catch {}
  }
  function resend(form) {
    const pending = recall();
    if (pending?.[0] !== form.elements.question.value) return;
    form.elements.timings.value = pending[2];
    form.dataset.state = "open";
    submit(form, pending[1], null);
  }

  // ---- each new page ----

  function arrive(swapped) {
    const stage = document.getElementById("stage");
    const form = stage.querySelector(ANSWERABLE);
    trial = null;
    gesture = null;
    page += 1;
    shown = swapped ? performance.now() : 0;
    if (swapped) {
      recall(); // the server has replied, even if it did not accept the answer
      scrollTo(0, 0);
      stage.querySelector("h1")?.focus({ preventScroll: true });
      // Feedback on a practice question.
      const note = stage.querySelector(".answered .note");
      document.getElementById("announcement").textContent = note?.textContent || "";
    }
    if (form) present(form);
    else setTimeout((part) => part?.setAttribute("data-settled", ""), SETTLING, stage.firstElementChild);
  }

  document.addEventListener("DOMContentLoaded", () => arrive(false));
  document.addEventListener("htmx:after:swap", () => arrive(true));
  // A page from the back/forward cache may show a trial that has been answered.
  addEventListener("pageshow", (event) => event.persisted && location.reload());

  // `reconnect` is replaced by connection.js; without it, loading is retried after a second.
  return { decodedImage, reconnect: () => wait(1000) };
})();
