// Zoom, search and keys of a flame graph. Frames are nested <svg> elements, so that places are shares of the width.
// The report has this script, and so has an SVG file that `iodock export` writes.

class Flame {
  // FRAMES in the order of a walk, the whole one first, with data-depth, data-weight and data-name.
  constructor(frames, tell) {
    this.frames = frames;
    this.tell = tell;
    this.start = frames.map((frame) => ({
      from: parseFloat(frame.getAttribute('x')),
      width: parseFloat(frame.getAttribute('width')),
      depth: Number(frame.dataset.depth),
      weight: Number(frame.dataset.weight),
    }));
    frames.forEach((frame, index) => {
      frame.addEventListener('click', () => this.zoom(index));
      frame.addEventListener('keydown', (event) => this.press(event, index));
    });
    this.reach(0);
  }

  // Only one frame is a stop of the Tab key; arrows go on from there.
  reach(at) {
    for (const frame of this.frames) frame.setAttribute('tabindex', '-1');
    this.frames[at].setAttribute('tabindex', '0');
  }

  zoom(at) {
    const to = this.start[at];
    this.frames.forEach((frame, index) => {
      const own = this.start[index];
      const isAbove = own.depth < to.depth && own.from <= to.from + 1e-6 && own.from + own.width >= to.from + to.width - 1e-6;
      const isInside = own.depth >= to.depth && own.from >= to.from - 1e-6 && own.from + own.width <= to.from + to.width + 1e-6;
      frame.style.display = isAbove || isInside ? '' : 'none';
      frame.classList.toggle('above', isAbove);
      frame.setAttribute('x', isAbove ? '0%' : `${((own.from - to.from) * 100) / (to.width || 1)}%`);
      frame.setAttribute('width', isAbove ? '100%' : `${(own.width * 100) / (to.width || 1)}%`);
    });
    this.reach(at);
  }

  search(words) {
    const wanted = words.toLowerCase();
    let sum = 0;
    let until = -1;
    this.frames.forEach((frame, index) => {
      const isFound = wanted !== '' && frame.dataset.name.toLowerCase().includes(wanted);
      frame.classList.toggle('found', isFound);
      // What lies inside of a found frame counts once.
      if (isFound && this.start[index].from >= until - 1e-6) {
        sum += this.start[index].weight;
        until = this.start[index].from + this.start[index].width;
      }
    });
    this.tell(wanted === '' ? '' : `${words}: ${((sum * 100) / (this.start[0].weight || 1)).toFixed(1)} %`);
  }

  // Down: the first frame inside. Up: the one around. Left and right: the next one at the same depth.
  neighbour(key, index) {
    const depth = this.start[index].depth;
    const isBack = key === 'ArrowUp' || key === 'ArrowLeft';
    const wanted = depth + ({ ArrowDown: 1, ArrowUp: -1 }[key] ?? 0);
    for (let at = index + (isBack ? -1 : 1); at >= 0 && at < this.frames.length; at += isBack ? -1 : 1) {
      if (this.frames[at].style.display !== 'none' && this.start[at].depth === wanted) return at;
      if (key === 'ArrowDown' && this.start[at].depth <= depth) return -1;
    }
    return -1;
  }

  press(event, index) {
    if (event.key === 'Enter' || event.key === ' ') this.zoom(index);
    else if (/^Arrow/.test(event.key)) {
      const next = this.neighbour(event.key, index);
      if (next >= 0) {
        this.reach(next);
        this.frames[next].focus();
      }
    } else return;
    event.preventDefault();
  }
}

// In a file of its own: the whole document has the keys.
function startFlameFile() {
  const status = document.getElementById('found');
  const flame = new Flame([...document.querySelectorAll('.frame')], (said) => { status.textContent = said; });
  const ask = () => {
    const words = window.prompt(document.documentElement.dataset.ask);
    if (words !== null) flame.search(words);
  };
  document.getElementById('search').addEventListener('click', ask);
  document.getElementById('whole').addEventListener('click', () => flame.zoom(0));
  document.addEventListener('keydown', (event) => {
    if (event.key === '/') ask();
    else if (event.key === 'Escape') {
      flame.zoom(0);
      flame.search('');
    } else if (event.target.id === 'search' && event.key === 'Enter') ask();
    else if (event.target.id === 'whole' && event.key === 'Enter') flame.zoom(0);
    else return;
    event.preventDefault();
  });
}
