// Scales, ticks and the frame that every chart shares: title, legend, drawing, readout of the point under the cursor.

function linearScale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

// Ticks at 1, 2 or 5 times a power of ten.
function linearTicks(high, wanted) {
  if (!(high > 0)) return [0];
  const raw = high / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let value = 0; value <= high * 1.0001; value += step) ticks.push(value);
  return ticks;
}

// Byte axes tick at powers of two, so that labels read 1, 2, 4 KiB and not 0.98.
function byteTicks(high, wanted) {
  if (!(high > 0)) return [0];
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(high / wanted)));
  const ticks = [];
  for (let value = 0; value <= high * 1.0001; value += step) ticks.push(value);
  return ticks;
}

function ticksFor(kind, high, wanted) {
  return kind === 'bytes' || kind === 'byterate' ? byteTicks(high, wanted) : linearTicks(high, wanted);
}

function tickText(kind, value) {
  if (value === 0) return '0';
  const text = SHOWN[kind](value)[0];
  return text.replace(/\.0+(?= |$|\/)/, '').replace(/(\.\d*?)0+(?= |$|\/)/, '$1');
}

function textAt(x, y, content, anchor, name) {
  return shape('text', { x: x.toFixed(1), y: y.toFixed(1), 'text-anchor': anchor || 'start', class: name || 'tick', text: content });
}

function line(x1, y1, x2, y2, name) {
  return shape('line', { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: name });
}

// Reads are filled, writes are hatched: told apart without colour.
function patterns(id) {
  const hatch = shape('pattern', { id, width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    shape('rect', { width: 5, height: 5, class: 'hatch-ground' }), shape('rect', { width: 2.4, height: 5, class: 'hatch-line' }));
  return shape('defs', {}, hatch);
}

let chartCount = 0;

class Chart {
  // options: title, height, width, left, describe (text for screen readers), steps (number of places of the cursor),
  // draw(chart), readout(step) -> text, place(step) -> x, numbers() -> {columns, rows}
  constructor(options) {
    this.options = options;
    this.id = 'chart-' + (chartCount += 1);
    this.step = -1;
    this.left = options.left || 64;
    this.right = 14;
    this.top = 8;
    this.bottom = options.bottom || 34;
    this.height = options.height || 240;
    this.svg = shape('svg', {
      class: 'chart', role: 'img', tabindex: options.steps ? '0' : null, 'aria-label': this.description(),
      onkeydown: (event) => this.moveByKey(event), onpointermove: (event) => this.moveByPointer(event),
      onpointerleave: () => this.moveTo(-1), onblur: () => this.moveTo(-1),
    });
    this.output = element('output', { class: 'readout', 'aria-live': 'polite', text: this.restText() });
    this.node = element('figure', { class: 'chart-frame' },
      element('figcaption', {}, element('span', { class: 'caption-title', text: options.title }), options.legend || null),
      this.svg, this.output, this.numbersTable());
    this.fitted = 0;
  }

  description() {
    const hint = this.options.steps ? ' ' + gettext('Use the arrow keys to read exact values.') : '';
    return this.options.title + '. ' + (this.options.describe || '') + hint;
  }

  restText() {
    return this.options.describe || '';
  }

  // Drawn to the width it gets, so that text keeps its size on narrow screens.
  drawAt(width) {
    if (Math.abs(width - this.fitted) < 2) return;
    this.fitted = width;
    this.width = width;
    this.plotRight = width - this.right;
    this.plotBottom = this.height - this.bottom;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${this.height}`);
    this.svg.setAttribute('width', width);
    this.svg.setAttribute('height', this.height);
    replaceContent(this.svg, patterns(this.id + '-hatch'));
    this.options.draw(this);
    this.cursor = line(0, this.top, 0, this.plotBottom, 'cursor');
    this.cursor.setAttribute('visibility', 'hidden');
    this.svg.append(this.cursor);
  }

  hatch() {
    return `url(#${this.id}-hatch)`;
  }

  add(...nodes) {
    this.svg.append(...nodes.flat().filter(Boolean));
  }

  moveByKey(event) {
    const moves = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: this.options.steps - 1, Escape: -1 };
    if (!this.options.steps || !(event.key in moves)) return;
    event.preventDefault();
    this.moveTo(event.key === 'Escape' ? -1 : Math.max(0, Math.min(this.options.steps - 1, moves[event.key])));
  }

  moveByPointer(event) {
    if (!this.options.steps) return;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const share = (x - this.left) / (this.plotRight - this.left);
    const step = this.options.stepAt ? this.options.stepAt(share) : Math.floor(share * this.options.steps);
    this.moveTo(share < 0 || share > 1 ? -1 : Math.max(0, Math.min(this.options.steps - 1, step)));
  }

  moveTo(step) {
    if (step === this.step || !this.cursor) return;
    this.step = step;
    if (step < 0) {
      this.cursor.setAttribute('visibility', 'hidden');
      this.output.textContent = this.restText();
      return;
    }
    const x = this.left + this.options.place(step) * (this.plotRight - this.left);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    this.cursor.setAttribute('visibility', 'visible');
    this.output.textContent = this.options.readout(step);
  }

  // The same data as a table, for those who can't use the drawing; built when it is opened.
  numbersTable() {
    if (!this.options.numbers) return null;
    const holder = element('div');
    const details = element('details', { class: 'numbers', ontoggle: () => {
      if (!details.open || holder.firstChild) return;
      const data = this.options.numbers();
      holder.append(new Table(data, { caption: this.options.title }).node);
    } }, element('summary', { text: gettext('As a table') }), holder);
    return details;
  }
}

const chartSizes = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const width = Math.floor(entry.contentRect.width);
    if (width > 0 && entry.target.chart) entry.target.chart.drawAt(width);
  }
});

// Puts a chart on the page; `fixed` draws it once at that width (for print, where nothing is measured).
function placeChart(parent, chart, fixed) {
  parent.append(chart.node);
  if (fixed) {
    chart.drawAt(fixed);
    return;
  }
  chart.node.chart = chart;
  chartSizes.observe(chart.node);
}

function legend(...entries) {
  return element('span', { class: 'legend' }, entries.map(([name, label]) =>
    element('span', { class: 'legend-entry' }, element('span', { class: 'swatch ' + name, 'aria-hidden': 'true' }), label)));
}

function readWriteLegend() {
  return legend(['read', gettext('read')], ['write', gettext('write')]);
}

function timeAxis(chart, seconds) {
  const scale = linearScale(0, seconds, chart.left, chart.plotRight);
  const wanted = Math.max(2, Math.floor((chart.plotRight - chart.left) / 90));
  for (const tick of linearTicks(seconds, wanted)) {
    const x = scale(tick);
    chart.add(line(x, chart.plotBottom, x, chart.plotBottom + 4, 'axis'));
    chart.add(textAt(x, chart.plotBottom + 16, tickText('time', Math.round(tick * 1e9)), 'middle'));
  }
  chart.add(line(chart.left, chart.plotBottom, chart.plotRight, chart.plotBottom, 'axis'));
  chart.add(textAt(chart.plotRight, chart.height - 4, gettext('time since the start'), 'end', 'axis-title'));
  return scale;
}
