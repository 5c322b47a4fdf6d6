// Throughput over time: reads above the line, writes below it.

const TIMELINE_MEASURES = {
  bytes: {
    read: 'read_bytes', write: 'written_bytes', kind: 'byterate', perSecond: true, name: gettext('Bytes'),
    title: (every) => gettext('Bytes per second, in intervals of {every}', { every }),
  },
  calls: {
    read: 'read_count', write: 'write_count', kind: 'rate', perSecond: true, name: gettext('Number of calls'),
    title: (every) => gettext('Reads and writes per second, in intervals of {every}', { every }),
  },
  time: {
    read: 'read_time_ns', write: 'write_time_ns', kind: 'share', perSecond: false, name: gettext('Time in calls'),
    title: (every) => gettext('Time inside reads and writes, as a share of each interval of {every} (above 100 % with several threads)', { every }),
  },
};

// Sparse rows [interval, ...] to one value per interval.
function dense(series, column, length) {
  const index = series.columns.indexOf(column);
  const values = new Array(length).fill(0);
  for (const row of series.rows) if (row[0] < length) values[row[0]] = row[index] || 0;
  return values;
}

function stepPath(values, x, y, base) {
  let path = '';
  let open = false;
  values.forEach((value, index) => {
    if (value > 0) {
      path += open ? `V${y(value).toFixed(1)}` : `M${x(index).toFixed(1)} ${base}V${y(value).toFixed(1)}`;
      path += `H${Math.max(x(index + 1), x(index) + 1).toFixed(1)}`;
      open = true;
    } else if (open) {
      path += `V${base}Z`;
      open = false;
    }
  });
  return open ? path + `V${base}Z` : path;
}

function timelineAxisY(chart, scale, highest, kind, direction) {
  for (const tick of ticksFor(kind, highest, 3)) {
    const y = scale(tick);
    chart.add(line(chart.left, y, chart.plotRight, y, tick === 0 ? 'axis' : 'grid'));
    if (tick > 0 || direction > 0) chart.add(textAt(chart.left - 6, y + 3.5, tickText(kind, tick), 'end'));
  }
}

function timelineValues(series, measure, length) {
  const factor = measure.perSecond ? 1e9 / series.every_ns : 1 / series.every_ns;
  return [dense(series, measure.read, length), dense(series, measure.write, length)].map((values) => values.map((v) => v * factor));
}

function drawTimeline(chart, series, measure, reads, writes) {
  const length = reads.length;
  const highRead = Math.max(...reads);
  const highWrite = Math.max(...writes);
  const space = chart.plotBottom - chart.top;
  const both = highRead > 0 && highWrite > 0;
  const middle = both ? chart.top + space / 2 : highWrite > 0 ? chart.top + 4 : chart.plotBottom;
  const x = linearScale(0, length, chart.left, chart.plotRight);
  const highest = Math.max(highRead, highWrite) || 1;
  const up = linearScale(0, highest, middle, chart.top + 4);
  const down = linearScale(0, highest, middle, chart.plotBottom - 4);
  if (highRead > 0 || !both) timelineAxisY(chart, up, highRead > 0 ? highest : 0, measure.kind, 1);
  if (highWrite > 0) timelineAxisY(chart, down, highest, measure.kind, -1);
  chart.add(shape('path', { d: stepPath(reads, x, up, middle), class: 'area-read' }));
  chart.add(shape('path', { d: stepPath(writes, x, down, middle), class: 'area-write', fill: chart.hatch() }));
  timeAxis(chart, (length * series.every_ns) / 1e9);
}

function timelineReadout(series, name, measure, reads, writes, step) {
  const at = timeText(step * series.every_ns) + ' – ' + timeText((step + 1) * series.every_ns);
  const show = (value) => SHOWN[measure.kind](value)[0];
  return gettext('{at}: read {read}, write {write}', { at, read: show(reads[step]), write: show(writes[step]) });
}

function timelineChart(series, measureName, options) {
  const measure = TIMELINE_MEASURES[measureName];
  const length = Math.max(1, series.intervals);
  const [reads, writes] = timelineValues(series, measure, length);
  const peak = (values) => SHOWN[measure.kind](Math.max(...values))[0];
  return new Chart({
    title: measure.title(timeText(series.every_ns)),
    describe: gettext('Highest: read {read}, write {write}.', { read: peak(reads), write: peak(writes) }),
    height: (options && options.height) || 220,
    left: 82,
    legend: readWriteLegend(),
    steps: length,
    place: (step) => (step + 0.5) / length,
    readout: (step) => timelineReadout(series, measureName, measure, reads, writes, step),
    draw: (chart) => drawTimeline(chart, series, measure, reads, writes),
    numbers: () => ({
      columns: ['start_ns', ...series.columns.slice(1)],
      rows: series.rows.map((row) => [row[0] * series.every_ns, ...row.slice(1)]),
    }),
  });
}

function timelineHasTimes(series) {
  return ['read_time_ns', 'write_time_ns'].some((name) => {
    const index = series.columns.indexOf(name);
    return index > 0 && series.rows.some((row) => row[index] > 0);
  });
}

// The chart with a choice of measure above it.
function timelineWithChoice(parent, series, fixed) {
  const names = timelineHasTimes(series) ? ['bytes', 'calls', 'time'] : ['bytes', 'calls'];
  const holder = element('div');
  const show = (name) => {
    replaceContent(holder);
    placeChart(holder, timelineChart(series, name), fixed);
  };
  if (!fixed) parent.append(choice(gettext('What to show'), names.map((n) => [n, TIMELINE_MEASURES[n].name]), 'bytes', show));
  parent.append(holder);
  show('bytes');
}

function choice(label, entries, chosen, pick) {
  const buttons = entries.map(([name, text]) => element('button', {
    type: 'button', 'aria-pressed': String(name === chosen), text, onclick: () => {
      buttons.forEach((button, index) => button.setAttribute('aria-pressed', String(entries[index][0] === name)));
      pick(name);
    },
  }));
  return element('div', { class: 'choice', role: 'group', 'aria-label': label }, buttons);
}
