// Zoom, search and keys of a flame graph. Frames are nested <svg> elements, so that places are shares of the width.
"use strict";
const frames = [...document.querySelectorAll(".frame")];
const found = document.getElementById("found");
const root = document.documentElement;
const start = frames.map((frame) => ({
  from: parseFloat(frame.getAttribute("x")),
  width: parseFloat(frame.getAttribute("width")),
  depth: Number(frame.dataset.depth),
  weight: Number(frame.dataset.weight),
}));

function zoom(at) {
  const to = start[at];
  frames.forEach((frame, index) => {
    const own = start[index];
    const isAbove = own.depth < to.depth && own.from <= to.from + 1e-6 && own.from + own.width >= to.from + to.width - 1e-6;
    const isInside = own.depth >= to.depth && own.from >= to.from - 1e-6 && own.from + own.width <= to.from + to.width + 1e-6;
    frame.style.display = isAbove || isInside ? "" : "none";
    frame.classList.toggle("above", isAbove);
    frame.setAttribute("x", isAbove ? "0%" : `${((own.from - to.from) * 100) / to.width}%`);
    frame.setAttribute("width", isAbove ? "100%" : `${(own.width * 100) / to.width}%`);
  });
}

function search(words) {
  const wanted = words.toLowerCase();
  let sum = 0;
  let until = -1;
  frames.forEach((frame, index) => {
    const isFound = wanted !== "" && frame.dataset.name.toLowerCase().includes(wanted);
    frame.classList.toggle("found", isFound);
    // Frames come in the order of a walk: what lies inside of a found one counts once.
    if (isFound && start[index].from >= until - 1e-6) {
      sum += start[index].weight;
      until = start[index].from + start[index].width;
    }
  });
  found.textContent = wanted === "" ? "" : `${words}: ${((sum * 100) / start[0].weight).toFixed(1)} %`;
}

function ask() {
  const words = window.prompt(root.dataset.ask);
  if (words !== null) search(words);
}

frames.forEach((frame, index) => {
  frame.addEventListener("click", () => zoom(index));
  frame.addEventListener("keydown", (event) => {
    const shown = frames.filter((one) => one.style.display !== "none");
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") zoom(index);
    else if (step) shown[shown.indexOf(frame) + step]?.focus();
    else return;
    event.preventDefault();
  });
});
document.getElementById("search").addEventListener("click", ask);
document.getElementById("whole").addEventListener("click", () => zoom(0));
document.addEventListener("keydown", (event) => {
  if (event.key === "/") ask();
  else if (event.key === "Escape") { zoom(0); search(""); }
  else if (event.target.id === "search" && event.key === "Enter") ask();
  else if (event.target.id === "whole" && event.key === "Enter") zoom(0);
  else return;
  event.preventDefault();
});
