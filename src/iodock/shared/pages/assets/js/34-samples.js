// The machine's own state under the throughput, on the same time axis.

function sampleTitle(series) {
  const key = series.source + '.' + series.metric;
  const name = Object.hasOwn(TEXT.samples, key) ? TEXT.samples[key] : series.source + ' ' + series.metric;
  return series.target ? name + ' · ' + visibleName(series.target) : name;
}

function drawSamples(chart, series, spanNs, highest) {
  const x = linearScale(0, spanNs, chart.left, chart.plotRight);
  const y = linearScale(0, highest || 1, chart.plotBottom, chart.top + 4);
  for (const tick of ticksFor(series.unit, highest, 2)) {
    chart.add(line(chart.left, y(tick), chart.plotRight, y(tick), tick === 0 ? 'axis' : 'grid'));
    chart.add(textAt(chart.left - 6, y(tick) + 3.5, tickText(series.unit, tick), 'end'));
  }
  const path = series.points.map(([at, value], index) => `${index ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('');
  chart.add(shape('path', { d: path, class: 'sample-line' }));
  // A line of one point is nothing to see.
  if (series.points.length === 1) {
    const [at, value] = series.points[0];
    chart.add(shape('circle', { cx: x(at).toFixed(1), cy: y(value).toFixed(1), r: 3, class: 'sample-dot' }));
  }
}

function sampleChart(series, spanNs) {
  const highest = Math.max(...series.points.map((point) => point[1]));
  const place = (step) => series.points[step][0] / (spanNs || 1);
  return new Chart({
    title: sampleTitle(series),
    describe: gettext('highest {high}', { high: SHOWN[series.unit](highest)[0] }),
    height: 86,
    bottom: 8,
    left: 82,
    steps: series.points.length,
    place,
    stepAt: (share) => nearestStep(series.points.length, place, share),
    readout: (step) => timeText(series.points[step][0]) + ': ' + SHOWN[series.unit](series.points[step][1])[0],
    draw: (chart) => drawSamples(chart, series, spanNs, highest),
  });
}
