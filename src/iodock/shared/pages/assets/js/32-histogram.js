// How many reads and writes of each size, both axes logarithmic. Bin n holds 2^n+1 .. 2^(n+1); 0 and 1 byte stand alone.

function sizeLabel(upper) {
  return upper < 2 ? String(upper) : tickText('bytes', upper);
}

function sizeRange(upper) {
  if (upper < 3) return grouped(upper) + ' B';
  return grouped(upper / 2 + 1) + ' – ' + grouped(upper) + ' B';
}

// Every bin between the smallest and the largest one used, so that gaps show as gaps.
function sizeBins(rows) {
  const uppers = rows.map((row) => row[1]);
  const low = Math.min(...uppers);
  const high = Math.max(...uppers);
  const bins = [];
  for (let upper = low; upper <= high; upper = upper === 0 ? 1 : upper * 2) bins.push(upper);
  const counts = { read: new Map(), write: new Map() };
  for (const [direction, upper, count] of rows) counts[direction].set(upper, count);
  return bins.map((upper) => ({ upper, read: counts.read.get(upper) || 0, write: counts.write.get(upper) || 0 }));
}

function drawHistogram(chart, bins, most) {
  const decades = Math.max(1, Math.ceil(Math.log10(most * 1.05)));
  // The axis starts below 1, so that a bin of one call can be seen.
  const y = linearScale(-0.3, decades, chart.plotBottom, chart.top + 4);
  const labelled = decades > 6 ? 2 : 1;
  for (let power = 0; power <= decades; power += 1) {
    chart.add(line(chart.left, y(power), chart.plotRight, y(power), 'grid'));
    if (power % labelled === 0) chart.add(textAt(chart.left - 6, y(power) + 3.5, grouped(10 ** power), 'end'));
  }
  const slot = (chart.plotRight - chart.left) / bins.length;
  const every = Math.max(1, Math.ceil(58 / slot));
  const width = Math.min(26, slot * 0.4);
  bins.forEach((bin, index) => {
    const middle = chart.left + slot * (index + 0.5);
    for (const [direction, from] of [['read', middle - width], ['write', middle]]) {
      if (!bin[direction]) continue;
      const top = y(Math.log10(bin[direction]));
      chart.add(shape('rect', {
        x: from.toFixed(1), y: top.toFixed(1), width: Math.max(1, width - 1).toFixed(1), height: (chart.plotBottom - top).toFixed(1),
        class: 'area-' + direction, fill: direction === 'write' ? chart.hatch() : null,
      }));
    }
    if (index % every === 0) chart.add(textAt(middle, chart.plotBottom + 15, sizeLabel(bin.upper), 'middle'));
  });
  chart.add(line(chart.left, chart.plotBottom, chart.plotRight, chart.plotBottom, 'axis'));
  chart.add(textAt(chart.plotRight, chart.height - 4, gettext('size of one access (upper limit)'), 'end', 'axis-title'));
}

function commonSize(bin) {
  const count = grouped(bin.read + bin.write);
  if (bin.upper === 0) return gettext('The most frequent accesses transferred nothing, as at the end of a file: {count}.', { count });
  return gettext('The most frequent accesses have a size of {range}: {count}.', { range: sizeRange(bin.upper), count });
}

function histogramChart(sizes, options) {
  const bins = sizeBins(sizes.rows);
  const most = Math.max(...bins.map((bin) => Math.max(bin.read, bin.write)));
  const commonest = bins.reduce((a, b) => (b.read + b.write > a.read + a.write ? b : a));
  return new Chart({
    title: gettext('Accesses by size'),
    describe: commonSize(commonest),
    height: (options && options.height) || 220,
    left: 82,
    legend: readWriteLegend(),
    steps: bins.length,
    place: (step) => (step + 0.5) / bins.length,
    readout: (step) => gettext('{range}: {read} reads, {write} writes', {
      range: sizeRange(bins[step].upper), read: grouped(bins[step].read), write: grouped(bins[step].write),
    }),
    draw: (chart) => drawHistogram(chart, bins, most),
    numbers: () => ({ columns: ['upper_bytes', 'read_count', 'write_count'], rows: bins.map((b) => [b.upper, b.read, b.write]) }),
  });
}
