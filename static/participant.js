// One trial: shown once all of it is ready, answered once, timed from its onset.
"use strict";

const lore = (() => {
  document.documentElement.classList.add("js");

  // The row of digits, by place and by character: some keyboards have digits only with Shift.
  const CODES = [..."1234567890"].map((digit) => `Digit${digit}`).concat("Minus", "Equal");
  const DIGITS = [..."1234567890-="];
  const ARROWS = { ArrowLeft: "left", ArrowRight: "right" };
  const CHOICES = "button:is([name=side], [name=chosen], [aria-pressed])";
  const SETTLING = 200; // a press this soon after onset was meant for the previous page
  const TOGETHER = 1000; // maximum time between the clicks of a double click, or a press and its click
  const MEDIA_TIMEOUT = 8000;
  const TRIES = 3;
  const ANSWERABLE = ".trial:not(.answered)";
  const MAX_AWAY = 50;
  const MAX_CLICKS = 100;
  const PENDING = "lore-answer";
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
    const now = { form, failed: [], played: {}, clicks: [], away: [], since: {}, onset: null };
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
      if (left <= 0) submit(now.form, [["side", "timeout"]], { time, began: Infinity, kind: "clock" });
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
    const option = media.closest(".option");
    const side = option ? option.querySelector("[name=side]")?.value || option.dataset.option : "anchor";
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

  // An answer is a list of fields: one side, or the positions of the chosen options.
  function submit(form, answer, how) {
    const [name, value] = answer[0];
    const button = answer.length === 1 && form.querySelector(`button[name=${name}][value="${value}"]`);
    if (!button) fill(form, answer);
    form.dataset.state = "open";
    gesture = how;
    form.requestSubmit(button || null);
  }

  function fill(form, answer) {
    form.querySelectorAll("input[name=chosen]").forEach((field) => field.remove());
    for (const [name, value] of answer)
      form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }

  function answerOf(form, button) {
    if (button?.name) return [[button.name, button.value]];
    const fields = [...form.querySelectorAll("input:is([name=side], [name=chosen])")];
    const side = fields.filter((field) => field.name === "side");
    return (side.length ? side : fields).map((field) => [field.name, field.value]);
  }

  const enough = (form, answer) =>
    answer[0]?.[0] === "side" || answer.length === Number(form.dataset.pick || 1);

  function meant({ key, code }, form) {
    if (!form.dataset.options && ARROWS[key]) return form.querySelector(`[value=${ARROWS[key]}]`);
    const place = CODES.includes(code) ? CODES.indexOf(code) : DIGITS.indexOf(key);
    return form.querySelectorAll(CHOICES)[place];
  }

  document.addEventListener("keydown", (event) => {
    const busy = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    if (!trial || busy || !trial.form.isConnected) return;
    const button = meant(event, trial.form);
    if (!button) return;
    event.preventDefault();
    if (event.repeat || trial.form.dataset.state !== "open") return;
    gesture = { time: event.timeStamp, began: event.timeStamp, kind: "key" };
    if (button.type === "submit") trial.form.requestSubmit(button);
    else lore.toggle(button);
  });

  function confirm(form, { timeStamp }) {
    gesture = { time: timeStamp, began: timeStamp, kind: "key" };
    form.requestSubmit();
  }

  // One of several choices, with its time; one that was meant for the previous page does not count.
  function counts(position) {
    if (!trial || tooEarly(trial.form)) return false;
    if (trial.clicks.length < MAX_CLICKS) trial.clicks.push([position, rounded(gesture.time - trial.onset)]);
    return true;
  }

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
      const answer = answerOf(form, event.submitter);
      if (!enough(form, answer)) {
        ignore(event);
        return lore.remind?.(form);
      }
      form.elements.timings.value ||= JSON.stringify(measured());
      event.submitter?.setAttribute("data-chosen", "");
      playables(form).forEach((media) => media.pause());
      remember(form, answer);
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

  const rounded = (value) => Math.round(value * 10) / 10;

  function measured() {
    const time = gesture?.time ?? performance.now();
    ["blur", "hidden"].forEach((what) => back(what, time));
    return {
      rt_ms: rounded(time - trial.onset),
      onset_at: rounded(performance.timeOrigin + trial.onset),
      response_at: rounded(performance.timeOrigin + time),
      away: trial.away.map(({ what, from, to }) => [what, rounded(from), rounded(to)]),
      background: background(),
      viewport: [innerWidth, innerHeight, devicePixelRatio],
      pointer: gesture?.kind || "",
      ...(Object.keys(trial.played).length && { played: trial.played }),
      ...(trial.clicks.length && { clicks: trial.clicks }),
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
  function remember(form, answer) {
    const { question, timings } = form.elements;
    try {
      sessionStorage.setItem(PENDING, JSON.stringify([question.value, answer, timings.value]));
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
    if (form) lore.prepare?.(form);
    if (form) present(form);
    else setTimeout((part) => part?.setAttribute("data-settled", ""), SETTLING, stage.firstElementChild);
  }

  document.addEventListener("DOMContentLoaded", () => arrive(false));
  document.addEventListener("htmx:after:swap", () => arrive(true));
  // A page from the back/forward cache may show a trial that has been answered.
  addEventListener("pageshow", (event) => event.persisted && location.reload());

  // `reconnect` is replaced by connection.js; without it, loading is retried after a second. grid.js
  // adds what questions of several options need.
  return { decodedImage, fill, confirm, counts, reconnect: () => wait(1000) };
})();
