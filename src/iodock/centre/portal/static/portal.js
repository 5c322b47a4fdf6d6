// Refreshes the page's live part, follows sorting and time range without a jump, and reads charts out.
"use strict";
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("refresh-state");
  const pause = document.getElementById("pause");
  let isPaused = false;
  let isBusy = false;
  let pointed = null;

  async function fetched(address) {
    const answer = await fetch(address, { headers: { "X-Fragment": "1" }, credentials: "same-origin" });
    if (answer.status === 401) { location.reload(); }
    if (!answer.ok) { throw new Error(String(answer.status)); }
    return answer.text();
  }

  function show(html) {
    const focused = document.activeElement && live.contains(document.activeElement)
      ? document.activeElement.getAttribute("href") : null;
    const places = [...live.querySelectorAll(".table-frame")].map((frame) => frame.scrollLeft);
    const parsed = new DOMParser().parseFromString(html, "text/html");
    live.replaceChildren(...parsed.body.childNodes);
    live.querySelectorAll(".table-frame").forEach((frame, at) => { frame.scrollLeft = places[at] || 0; });
    const again = focused && [...live.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
    if (again) { again.focus({ preventScroll: true }); }
    if (pointed !== null) { readOut(pointed); }
  }

  async function refresh() {
    // Nothing changes under somebody who writes, or while nobody looks.
    if (isPaused || isBusy || document.hidden || (document.activeElement && document.activeElement.matches("input, select"))) { return; }
    isBusy = true;
    const address = location.href;
    try {
      const html = await fetched(address);
      // Paused, or elsewhere, since it was asked for.
      if (isPaused || address !== location.href) { return; }
      show(html);
      state.textContent = state.dataset.live;
    } catch {
      if (!isPaused) { state.textContent = state.dataset.lost; }
    } finally {
      isBusy = false;
    }
  }

  async function follow(address) {
    try {
      show(await fetched(address));
      history.pushState(null, "", address);
    } catch {
      location.href = address;
    }
  }

  // Charts have time axes of their own: each shows what it has of that moment, seconds since the epoch.
  function readOut(moment) {
    pointed = moment;
    document.querySelectorAll(".chart").forEach((chart) => {
      const drawing = chart.querySelector(".drawing");
      if (!drawing) { return; }
      const outputs = chart.querySelectorAll("output");
      const rows = JSON.parse(drawing.dataset.readout);
      const steps = drawing.viewBox.baseVal.width;
      const begin = Number(drawing.dataset.begin), step = Number(drawing.dataset.step);
      const place = moment === null ? -1 : Math.floor((moment - begin) / step);
      const at = place < steps ? place : -1;
      drawing.querySelector(".pointer").setAttribute("d", at < 0 ? "" : `M${at + 0.5} 0V100`);
      rows.forEach(([, values], row) => { outputs[row].textContent = at < 0 ? "" : values[at] || "–"; });
      const title = chart.querySelector(".chart-title");
      const when = new Date((begin + at * step) * 1000);
      title.title = at < 0 ? "" : when.toLocaleString();
    });
  }

  document.addEventListener("pointermove", (event) => {
    const drawing = event.target.closest && event.target.closest(".plot .drawing");
    if (drawing) {
      const box = drawing.getBoundingClientRect();
      const share = Math.min(0.999999, Math.max(0, (event.clientX - box.left) / box.width));
      const length = drawing.viewBox.baseVal.width * Number(drawing.dataset.step);
      readOut(Number(drawing.dataset.begin) + share * length);
    } else if (pointed !== null) {
      readOut(null);
    }
  });

  if (!live) { return; }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.sort, .ranges a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
    // What shows the past is not refreshed, and the other way round: that is another page.
    if (link.href.includes("end=") || location.href.includes("end=")) { return; }
    event.preventDefault();
    follow(link.href);
  });
  window.addEventListener("popstate", () => location.reload());
  if (live.dataset.refresh) {
    document.querySelector(".refresh").hidden = false;
    pause.addEventListener("click", () => {
      isPaused = !isPaused;
      pause.setAttribute("aria-pressed", String(isPaused));
      state.textContent = isPaused ? state.dataset.paused : state.dataset.live;
    });
    setInterval(refresh, 1000 * Number(live.dataset.refresh));
  }
  document.documentElement.dataset.ready = "";
})();
