// Where in the file, when. Few accesses are drawn one by one; many come binned, darker where there were more.

function offsetAxis(chart, low, high) {
  const y = linearScale(low, high, chart.plotBottom - 4, chart.top + 4);
  const ticks = byteTicks(high - low, 4).map((tick) => tick + low);
  for (const tick of ticks) {
    chart.add(line(chart.left, y(tick), chart.plotRight, y(tick), 'grid'));
    chart.add(textAt(chart.left - 6, y(tick) + 3.5, tickText('bytes', Math.round(tick)), 'end'));
  }
  return y;
}

// A cell: [time bin, offset bin, reads, writes].
function drawCells(chart, offsets, y) {
  const cellWidth = (chart.plotRight - chart.left) / offsets.time_bins;
  const span = offsets.high_bytes - offsets.low_bytes || 1;
  const most = Math.max(1, ...offsets.cells.map((cell) => cell[2] + cell[3]));
  for (const [time, place, reads, writes] of offsets.cells) {
    const top = y(offsets.low_bytes + ((place + 1) / offsets.offset_bins) * span);
    const bottom = y(offsets.low_bytes + (place / offsets.offset_bins) * span);
    const strength = 0.45 + 0.55 * (Math.log(reads + writes + 1) / Math.log(most + 1));
    const mostlyWritten = writes > reads;
    chart.add(shape('rect', {
      x: (chart.left + time * cellWidth).toFixed(1), y: top.toFixed(1),
      width: Math.max(2, cellWidth).toFixed(1), height: Math.max(2, bottom - top).toFixed(1),
      class: mostlyWritten ? 'area-write' : 'area-read', fill: mostlyWritten ? chart.hatch() : null,
      opacity: strength.toFixed(2),
    }));
  }
}

// A point: [start ns, offset, size, is write]. Reads are filled marks, writes hollow ones.
function drawPoints(chart, offsets, x, y) {
  for (const [start, offset, size, isWrite] of offsets.points) {
    const top = y(offset + size);
    const height = Math.max(3, y(offset) - top);
    chart.add(shape('rect', {
      x: (x(start) - 1.5).toFixed(1), y: (y(offset) - height).toFixed(1), width: 3, height: height.toFixed(1),
      class: isWrite ? 'mark-write' : 'mark-read',
    }));
  }
}

function columnsOfCells(offsets) {
  const columns = new Map();
  for (const [time, place, reads, writes] of offsets.cells || []) {
    const sum = columns.get(time) || { reads: 0, writes: 0, low: place, high: place };
    sum.reads += reads;
    sum.writes += writes;
    sum.low = Math.min(sum.low, place);
    sum.high = Math.max(sum.high, place);
    columns.set(time, sum);
  }
  return Array.from(columns.entries()).sort((a, b) => a[0] - b[0]);
}

function offsetReadout(offsets, columns, step) {
  if (offsets.points) {
    const [start, offset, size, isWrite] = offsets.points[step];
    const shown = { at: timeText(start), size: bytesText(size), offset: grouped(offset) };
    return isWrite
      ? gettext('{at}: write of {size} at offset {offset}', shown)
      : gettext('{at}: read of {size} at offset {offset}', shown);
  }
  const [time, sum] = columns[step];
  const width = (offsets.high_bytes - offsets.low_bytes) / offsets.offset_bins;
  return gettext('{at}: {read} reads, {write} writes between {low} and {high}', {
    at: timeText((time * offsets.span_ns) / offsets.time_bins), read: grouped(sum.reads), write: grouped(sum.writes),
    low: bytesText(offsets.low_bytes + sum.low * width), high: bytesText(offsets.low_bytes + (sum.high + 1) * width),
  });
}

function offsetSteps(offsets, columns) {
  if (!offsets.points) {
    return { steps: columns.length, place: (step) => (columns[step][0] + 0.5) / offsets.time_bins };
  }
  return { steps: offsets.points.length, place: (step) => offsets.points[step][0] / (offsets.span_ns || 1) };
}

// The cursor goes to the access nearest in time.
function nearestStep(steps, place, share) {
  let best = 0;
  for (let step = 1; step < steps; step += 1) if (Math.abs(place(step) - share) < Math.abs(place(best) - share)) best = step;
  return best;
}

function offsetsChart(offsets, options) {
  const columns = columnsOfCells(offsets);
  const { steps, place } = offsetSteps(offsets, columns);
  return new Chart({
    title: gettext('Offset in the file over time'),
    describe: gettext('From {low} to {high}.', { low: bytesText(offsets.low_bytes), high: bytesText(offsets.high_bytes) }),
    height: (options && options.height) || 240,
    left: 82,
    legend: readWriteLegend(),
    steps,
    place,
    stepAt: (share) => nearestStep(steps, place, share),
    readout: (step) => offsetReadout(offsets, columns, step),
    draw: (chart) => {
      const y = offsetAxis(chart, offsets.low_bytes, offsets.high_bytes);
      timeAxis(chart, offsets.span_ns / 1e9);
      const x = linearScale(0, offsets.span_ns, chart.left, chart.plotRight);
      if (offsets.points) drawPoints(chart, offsets, x, y);
      else drawCells(chart, offsets, y);
    },
  });
}
